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
// Rows of an editor's store that have no other reader are read with [Store.Keys],
// [Store.Rows] and [Store.Value] by the prefix of their keys:
//
//	for row, err := range store.Rows(ctx, cursor.CodeDiffPrefix+conv.ID+":") { … }
//
// The package promises that a blob is returned with exactly the bytes that its id
// names, or an error; that an unreadable row is reported and does not affect other
// rows; and that secrets in these files are never printed. Copying a store into a
// stet store is left to package cursorimport, the meaning of a state to package
// conversation, that of a workspace checkpoint to package jsoncheckpoint.
package cursor
