// Package usage measures what a store takes: stored bytes by kind of content, by
// conversation, and over time.
//
//	report, err := store.Measure(ctx, nil)
//	for _, k := range report.Kinds {
//		fmt.Println(k.Name, k.Blobs, k.Bytes)
//	}
//	fmt.Println("without a reference", report.Unreferenced.Bytes)
//
// A report adds up: every blob that the store lists is counted once, with one of the
// kinds or as unreferenced. The references are those that a collector follows, so that
// unreferenced is what the next collection may remove. Content of archived
// conversations is in packs and not among the blobs; it is one figure of its own.
//
// The package only reads. It goes on where something is damaged and returns what it
// could not read with the report, and it ends when its context does. Memory is
// about 60 bytes for each stored blob and 100 for each conversation; contents are read
// one after the other and not kept. Front ends print or encode what it returns.
package usage
