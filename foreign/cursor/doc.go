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
// The package promises that a blob is returned with exactly the bytes that its
// id names, or an error; that a row which cannot be understood is reported and
// costs no other row; and that secrets in these files are never printed.
// Turning what was read into conversations of our own is left to importers,
// and the meaning of a state to package conversation.
package cursor
