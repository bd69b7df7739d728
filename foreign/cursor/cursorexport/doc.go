// Package cursorexport writes conversations of a stet store into a new database of the
// Cursor editor, under the editor's own keys.
//
//	src := cursorimport.Target{Blobs: db.Blobs(), Rows: db.Rows()}
//	result, err := cursorexport.Export(ctx, src, "copy.vscdb", ids, nil)
//
// The package promises that the file appears complete or not at all, that an existing file
// is never changed, that every state in it is complete, and that package cursorimport reads
// the same conversations, states and blobs from it. The file itself is left to package
// cursor. The lists of conversations that the editor shows are not written.
package cursorexport
