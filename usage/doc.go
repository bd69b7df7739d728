// Package usage measures the size of a store: stored bytes by kind of content, by
// conversation, and over time.
//
//	report, err := store.Measure(ctx, nil)
//	for _, k := range report.Kinds {
//		fmt.Println(k.Name, k.Blobs, k.Bytes)
//	}
//	fmt.Println("without a reference", report.Unreferenced.Bytes)
//
// A report adds up: every blob that the store lists is counted once, with one of the
// kinds or as unreferenced. The references are those that a collector follows, so
// unreferenced blobs are those that the next collection may remove. Content of
// archived conversations is in packs, not among the blobs, and is a separate figure.
//
// The package only reads. It continues past damage and returns what it could not read
// with the report, and it stops when its context ends. It needs about 60 bytes of
// memory for each stored blob and 100 for each conversation; contents are read one at
// a time and not kept. Front ends print or encode the results.
package usage
