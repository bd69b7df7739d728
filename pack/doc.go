// Package pack moves idle conversations out of the database into a few objects of a
// bucket, and back, so that the cost of a store depends on its conversations and not
// on their rows and blobs.
//
// A [Store] is below every layer that changes bytes: it sees names, contents and
// values as they are stored (compressed, sealed, encrypted) and moves them unchanged.
// The caller decides what belongs to a conversation.
//
//	blobs := engine.Blobs()
//	packs := pack.New(pack.Driver{Blobs: blobs, Rows: engine.Rows(), Objects: bucket, Rewriter: blobs}, nil)
//	db, err := stet.New(ctx, stet.Backend{Blobs: packs.Blobs(), Rows: packs.Rows()}, nil, nil)
//	archived, err := packs.Archive(ctx, "c1", func(ctx context.Context) (pack.Contents, error) { … })
//	err = packs.Unarchive(ctx, "c1")
//
// # What readers see
//
// Get, and Scan of a range that lies inside one conversation (its saves, its messages,
// the events of its agent), answer as if nothing had been archived: rows are read from
// the packs by range requests. So do reads of checkpoints and agents, whose records stay
// in the database under another key. A scan over all conversations returns only what is
// in the database. A collector therefore does not walk through packs and need not know
// about them; for it, [Store.Bare] also leaves out the records of archived agents and
// checkpoints.
//
// A blob that only packs hold is found if a row of its conversation was read through the
// same Store before, among the last [Options.Recent] archived conversations read. Callers
// learn the id of a blob from a row, so this is the normal case. For an id from
// elsewhere, such as another node, the answer is blob.ErrNotFound. A reader gets the same
// answer if it read the rows before another node archived them, has read the rows of 128
// other conversations since, and requests the blobs after a whole collection. Reading the
// rows again helps.
//
// # What writers do
//
// A commit that expects, changes or removes a row of an archived conversation first
// brings all of it back: blobs, then rows, in one commit. Versions read from a pack
// stay valid. A commit that refers to blobs in a pack copies those back. Removing a
// whole conversation removes its packs.
//
// # How nothing is lost
//
// Archiving writes a note to the database, copies rows and blobs into objects under new
// keys, reads the index of each back, and then, in one commit that expects every
// copied row unchanged, replaces the rows by one row that locates them. A writer that
// changes the conversation meanwhile removes the note, and the archiving ends without
// effect. The collector removes the blobs, since nothing refers to them. A crash
// leaves at most objects that nothing names; [Store.Sweep] removes those.
package pack
