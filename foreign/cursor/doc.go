// Package cursor reads the stores of the Cursor editor, its command line and
// its SDK, and rescues what is in them.
//
// [Open] takes a state.vscdb, a store.db, or the directory of an SDK store. The
// files belong to somebody else, who may be writing them: they are opened
// read-only, in transactions of milliseconds, and nothing is created beside
// them. Keys are found by index ranges, so that a file of many gigabytes is
// listed in seconds and in little memory.
//
//	store, err := cursor.Open(ctx, path, nil)
//	defer store.Close()
//	for conv, err := range store.All(ctx) {
//		for msg, err := range store.Messages(ctx, conv) { … }
//		state, err := conv.State, conv.StateErr
//	}
//	data, err := store.Blobs().Get(ctx, id)
//
// [Import] brings all of it into a store of ours, as often as one likes:
//
//	result, err := cursor.Import(ctx, store, cursor.Target{Blobs: blobs, Rows: rows}, nil)
//	source, err := cursor.ReadSource(ctx, target, conv.ID) // rows and files as they were
//
// The package promises that a blob is returned with exactly the bytes that its
// id names, or an error; that a row which cannot be understood is reported and
// costs no other row; that secrets in these files are never printed; and that
// an import leaves no state with holes, wherever it is killed. The meaning of
// a state is left to package conversation, that of a workspace checkpoint to
// package jsoncheckpoint.
package cursor
