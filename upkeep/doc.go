// Package upkeep keeps a store in order: it removes what nothing refers to
// (Collect), finds damage (Check), sets damaged rows aside (Quarantine), moves idle
// conversations into packs and back (Archive, Unarchive), encrypts with another key
// (Reencrypt), and compresses recently stored content when there is time (Compactor).
//
// It promises that each of these can run beside readers and writers, can be killed at
// any point, and removes nothing that a row refers to. Collect removes nothing if a
// damaged row or blob hides its references. Check changes nothing.
//
// The services define what their rows mean, and the drivers how blobs are listed,
// swept and replaced. It takes stores, so it works on any stack:
//
//	keep := upkeep.New(upkeep.Stores{Blobs: blobs, Rows: rows, Inventory: driver})
//	report, err := keep.Check(ctx, &upkeep.CheckOptions{ReadData: true})
//	result, err := keep.Collect(ctx, nil)
//
// Package stet builds the stack, and stet.DB has the same methods.
package upkeep
