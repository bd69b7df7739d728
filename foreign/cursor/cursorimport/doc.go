// Package cursorimport copies a store of the Cursor editor, its command line or its
// SDK into a stet store.
//
// [Import] copies all of it, or selected conversations, and can be repeated. Ids are
// kept, so a second import adds only what is new:
//
//	src, err := cursor.Open(ctx, path, nil)
//	dst := cursorimport.Target{Blobs: db.Blobs(), Rows: db.Rows()}
//	result, err := cursorimport.Import(ctx, src, dst, nil)
//	source, err := cursorimport.ReadSource(ctx, dst, id) // rows and files as they were
//
// The package promises that an import never leaves an incomplete state, even if it is
// killed; that the next import finishes it; that damaged data is skipped with a
// reason; and that conversations that were continued in the target stay unchanged.
// Reading the source is left to package cursor.
package cursorimport
