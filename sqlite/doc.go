// Package sqlite is the embedded engine: one directory that is both a
// blob.Store and a kv.Store, durable, and shared by several processes.
//
//	db, err := sqlite.Open(ctx, dir, nil)
//	defer db.Close()
//	store := blob.Checked(db.Blobs())
//	err = store.Put(ctx, b)
//	err = db.Rows().Commit(ctx, &kv.Batch{Set: …, Refs: []blob.ID{b.ID}})
//
// Rows and small blobs live in a SQLite database (WAL, synchronous=FULL); blobs from
// 128 KiB up are object files beside it, written, linked and synced before their row
// commits. One goroutine writes: commits that arrive while it syncs share the next
// transaction and its single fsync, and a failed commit does not affect the others.
//
// Once Commit or Flush returns, the data survives a power loss. After a failed write to
// the database the store refuses further writes until it is opened again, because the
// state of the disk is unknown. A full disk is reported as blob.ErrFull and refuses
// only what did not fit. A disk too full to open a store for writing still lets it be read
// (Options.ReadIfFull).
//
// The package does not verify that content matches its id (blob.Checked does), nor does
// it seal rows (kv/sealed does). docs/FORMAT.md has every byte.
package sqlite
