// Package pack moves idle conversations out of the database into a few objects of
// a bucket, and back, so that what a store costs follows its conversations and not
// their rows and blobs.
//
// A [Store] stands below every layer that changes bytes: it sees names, contents
// and values as they are stored, compressed, sealed and encrypted, and moves them
// as they are. What belongs to a conversation is for the caller to say.
//
//	packs := pack.New(driver.Blobs(), driver.Rows(), bucket, nil)
//	db, err := stet.New(ctx, stet.Backend{Blobs: packs.Blobs(), Rows: packs.Rows()}, nil, nil)
//	sealed, err := packs.Seal(ctx, "c1", func(ctx context.Context) (pack.Contents, error) { … })
//	err = packs.Unseal(ctx, "c1")
//
// # What readers see
//
// Get, and Scan of a range that lies inside one conversation (its saves, its
// messages, the events of its agent), answer as if nothing had been sealed: rows
// come out of the packs by range requests. So do checkpoints and agents, whose
// records stay in the database under another key. A scan over all conversations
// gives what is in the database, so that a collector, which must not walk through
// what costs nothing any more, does not have to know of packs; for it [Store.Bare]
// leaves out the records of sealed agents and checkpoints as well.
//
// A blob that only packs hold is found if a row of its conversation was read
// through the same Store before, among the last [Options.Recent] sealed
// conversations that were read. Who asks for a blob knows its id from a row, so
// that this is what happens; an id that comes from elsewhere, such as from another
// node, is answered with blob.ErrNotFound. So is one of a reader who read the rows
// before they were sealed, on another node than the one that sealed them, read
// those of 128 others since, and asks for the blobs after a whole collection:
// reading the rows again helps.
//
// # What writers do
//
// A commit that expects, changes or removes a row of a sealed conversation brings
// all of it back first: blobs, then rows, in one commit. Versions that were read
// out of a pack still count. A commit that refers to blobs which only a pack holds
// copies those back. Removing a whole conversation removes its packs.
//
// # How nothing is lost
//
// Sealing leaves a note in the database, copies rows and blobs into objects whose
// keys are never used again, reads the index of each back, and then, in one
// commit that expects every row to be as it was copied, exchanges the rows for the
// one that says where they are. Whoever changes the conversation meanwhile takes
// the note away, and the sealing ends without a trace. Blobs are left to the
// collector, who finds that nothing refers to them. A crash leaves at most objects
// that nothing names; [Store.Sweep] removes those.
package pack
