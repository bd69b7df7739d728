// Package cursor reads the stores of the Cursor editor, its command line and its SDK,
// and recovers their content.
//
// [Open] takes a state.vscdb, a store.db, or the directory of an SDK store. Another
// program owns the files and may be writing them: they are opened read-only, in
// transactions of milliseconds, and nothing is created beside them. Keys are found by
// index ranges, so a file of many gigabytes is listed in seconds with little memory.
//
//	store, err := cursor.Open(ctx, path, nil)
//	defer store.Close()
//	for conv, err := range store.All(ctx) {
//		for msg, err := range store.Messages(ctx, conv) { … }
//		state, err := conv.State, conv.StateErr
//	}
//	data, err := store.Blobs().Get(ctx, id)
//
// [Import] imports all of it into a stet store and can be repeated:
//
//	result, err := cursor.Import(ctx, store, cursor.Target{Blobs: blobs, Rows: rows}, nil)
//	source, err := cursor.ReadSource(ctx, target, conv.ID) // rows and files as they were
//
// The package promises that a blob is returned with exactly the bytes that its id
// names, or an error; that an unreadable row is reported and does not affect other
// rows; that secrets in these files are never printed; and that an import never
// leaves an incomplete state, wherever it is killed. The meaning of a state is left
// to package conversation, that of a workspace checkpoint to package jsoncheckpoint.
package cursor
