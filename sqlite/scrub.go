package sqlite

import (
	"context"
	"fmt"

	"github.com/ncruces/go-sqlite3"

	"github.com/stet-dev/stet/kv"
)

// Scrub overwrites the remains of removed blobs and rows: it rewrites the database
// without free pages and gaps, and empties the log. Until it returns nil, removed content
// may still be in these files. It needs room for a second copy of the database, and waits
// for other processes; if one of them keeps using the log, it fails with kv.ErrBusy and
// may be called again.
func (db *DB) Scrub(ctx context.Context) error {
	if err := db.writer.flush(ctx); err != nil {
		return err
	}
	w := db.writer
	w.turn.Lock()
	defer w.turn.Unlock()
	w.mu.Lock()
	failed := w.failed
	w.mu.Unlock()
	if failed != nil {
		return readOnlySince(failed)
	}
	old := w.conn.SetInterrupt(ctx)
	defer w.conn.SetInterrupt(old)
	db.disk.forget()
	if err := w.conn.Exec(`VACUUM`); err != nil {
		return db.disk.explain("use the disk", sqlError("write the database again", err))
	}
	w.logPages = 0
	_, _, err := w.conn.WALCheckpoint("main", sqlite3.CHECKPOINT_TRUNCATE)
	if err != nil {
		return fmt.Errorf("%w: another process uses the log of the database: %v", kv.ErrBusy, err)
	}
	return nil
}
