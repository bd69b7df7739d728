// Package document stores documents for programs: contents under names that the
// program chooses, in collections.
//
// A framework with pluggable storage, for sessions, runs or files, needs names, lists
// and changes that happen together. [Store.Commit] changes any number of documents of
// a collection, all of them or none, and only if they are at the versions that the
// caller expects:
//
//	store := document.Open(blobs, rows, nil)
//	done, err := store.Commit(ctx, "sessions", document.Batch{Changes: []document.Change{
//		{Name: "s1/head", Set: &document.New{Metadata: summary}, Expect: document.At(head.Version)},
//		{Name: "s1/0002", Set: &document.New{Type: "application/json", Data: entries}, Expect: document.Absent},
//	}})
//	if errors.Is(err, document.ErrConflict) { … another writer was faster … }
//	docs, err := store.Get(ctx, "sessions", "s1/head")
//	for doc, err := range store.List(ctx, document.Query{Collection: "sessions", Prefix: "s1/"}) { … }
//
// Names are ordered by their bytes. Contents larger than a few bytes are blobs, stored as
// the difference from the content that they replace. The meaning of names, contents and
// metadata is left to the program, access control to the server.
package document
