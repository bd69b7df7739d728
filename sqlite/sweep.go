package sqlite

import (
	"context"
	"io/fs"
	"slices"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/stet-dev/stet/blob"
)

const (
	listPage  = 1000 // blobs that List reads at a time
	sweepPage = 500  // blobs that Sweep removes in one transaction
	// orphanAge keeps Sweep away from object files whose row is not written yet.
	orphanAge = time.Hour
)

// List implements blob.Lister. It writes pending blobs first.
func (b *Blobs) List(ctx context.Context, after blob.ID, fn func(blob.Info) error) error {
	if err := b.written(ctx); err != nil {
		return err
	}
	for {
		page := make([]blob.Info, 0, listPage)
		err := b.db.readers.with(ctx, func(c *conn) error {
			return c.query(`SELECT id, size, base FROM blobs WHERE id > ?1 ORDER BY id LIMIT ?2`, func(s *sqlite3.Stmt) error {
				info := blob.Info{Stored: s.ColumnInt64(1)}
				copy(info.ID[:], s.ColumnRawBlob(0))
				copy(info.Base[:], s.ColumnRawBlob(2))
				page = append(page, info)
				return nil
			}, after[:], listPage)
		})
		if err != nil {
			return b.db.readError(ctx, "list blobs", err)
		}
		for _, info := range page {
			if err := fn(info); err != nil {
				return err
			}
		}
		if len(page) < listPage {
			return nil
		}
		after = page[len(page)-1].ID
	}
}

// Info describes one durable blob, or returns an error that wraps
// blob.ErrNotFound.
func (b *Blobs) Info(ctx context.Context, id blob.ID) (blob.Info, error) {
	info := blob.Info{ID: id}
	found := false
	err := b.db.readers.with(ctx, func(c *conn) error {
		return c.query(`SELECT size, base FROM blobs WHERE id = ?1`, func(s *sqlite3.Stmt) error {
			found, info.Stored = true, s.ColumnInt64(0)
			copy(info.Base[:], s.ColumnRawBlob(1))
			return nil
		}, id[:])
	})
	if err != nil {
		return blob.Info{}, b.db.readError(ctx, "look at blob "+id.String(), err)
	}
	if !found {
		return blob.Info{}, blob.NotFound(id)
	}
	return info, nil
}

// Begin implements blob.Sweeper.
func (b *Blobs) Begin(ctx context.Context) (uint64, error) {
	var gen int64
	err := b.db.writer.do(&request{ctx: ctx, task: func(c *conn) error {
		if err := c.exec(`UPDATE meta SET value = value + 1 WHERE key = 'generation'`); err != nil {
			return sqlError("begin a generation", err)
		}
		var err error
		gen, err = generation(c)
		return err
	}})
	if err != nil {
		return 0, err // the task may still run after ctx has ended
	}
	return uint64(gen), nil
}

// Sweep implements blob.Sweeper. If it is killed, only whole blobs are left: it removes
// blobs before their bases.
func (b *Blobs) Sweep(ctx context.Context, number uint64, opts blob.SweepOptions) (blob.SweepResult, error) {
	plan, files, err := b.planSweep(ctx, int64(number), opts)
	if err != nil {
		return blob.SweepResult{}, err
	}
	result, err := plan.Remove(sweepPage, func(page []blob.ID) ([]blob.ID, error) {
		return b.removePage(ctx, int64(number), page, files)
	})
	if err != nil || opts.DryRun {
		return result, err
	}
	return result, b.removeOrphans(ctx)
}

// planSweep scans all blobs. It also returns the object files of old ones.
func (b *Blobs) planSweep(ctx context.Context, number int64, opts blob.SweepOptions) (*blob.SweepPlan, map[blob.ID]string, error) {
	var plan *blob.SweepPlan
	files := make(map[blob.ID]string)
	youngest := time.Now().Unix() - opts.GraceSeconds
	err := b.db.readers.with(ctx, func(c *conn) error {
		latest, err := generation(c)
		if err != nil {
			return err
		}
		if plan, err = blob.NewSweepPlan(uint64(number), uint64(latest), opts); err != nil {
			return err
		}
		// One statement sees one state; rows that are replaced meanwhile move.
		return c.query(`SELECT id, gen, born, size, base, file FROM blobs`, func(s *sqlite3.Stmt) error {
			info := blob.Info{Stored: s.ColumnInt64(3)}
			copy(info.ID[:], s.ColumnRawBlob(0))
			copy(info.Base[:], s.ColumnRawBlob(4))
			old := s.ColumnInt64(1) < number && s.ColumnInt64(2) <= youngest
			if file := s.ColumnText(5); old && file != "" {
				files[info.ID] = file
			}
			plan.Look(info, old)
			return ctx.Err()
		})
	})
	if err != nil {
		return nil, nil, b.db.readError(ctx, "look for unneeded blobs", err)
	}
	return plan, files, nil
}

// removePage deletes the blobs that nothing leans on. The condition on the generation
// skips blobs that a commit has touched meanwhile.
func (b *Blobs) removePage(ctx context.Context, number int64, page []blob.ID, files map[blob.ID]string) ([]blob.ID, error) {
	for _, id := range page {
		if file := files[id]; file != "" {
			if err := b.db.objects.condemn(id, file); err != nil {
				return nil, fileError("prepare removal of an object file", err)
			}
		}
	}
	var gone []blob.ID
	err := b.db.writer.do(&request{ctx: ctx, task: func(c *conn) error {
		gone = nil
		last, err := lastNumber(c)
		if err != nil {
			return err
		}
		for _, id := range page {
			// A blob replaced meanwhile names another file; the next sweep removes it.
			err := c.exec(`DELETE FROM blobs WHERE id = ?1 AND gen < ?2 AND coalesce(file, '') = ?3
				AND NOT EXISTS (SELECT 1 FROM blobs AS leaning WHERE leaning.base = ?1)`, id[:], number, files[id])
			if err != nil {
				return sqlError("remove blob "+id.String(), err)
			}
			if c.Changes() > 0 {
				gone = append(gone, id)
			}
		}
		return noteReuse(c, last)
	}})
	if err != nil {
		return nil, err
	}
	for _, id := range gone {
		if file := files[id]; file != "" {
			if err := b.db.objects.discard(id, file); err != nil {
				return gone, fileError("remove an object file", err)
			}
		}
	}
	return gone, nil
}

// leftover is an object whose second link was not removed, because a process was
// killed.
type leftover struct {
	id     blob.ID
	suffix string
}

// sweepOrphans cleans up after killed processes. No other process may be writing to the
// store.
func (db *DB) sweepOrphans() error {
	var orphans []leftover
	err := db.objects.temporary(func(id blob.ID, suffix string) error {
		named, err := rowNames(db.writer.conn, id, suffix)
		if err != nil {
			return sqlError("look for an object's row", err)
		}
		if named {
			return fileError("remove a leftover link", db.objects.unlinkTemp(id, suffix))
		}
		orphans = append(orphans, leftover{id, suffix})
		return nil
	})
	if err != nil || len(orphans) == 0 {
		return err
	}
	if err := db.writer.transact(overwriteDoubt); err != nil {
		return err
	}
	for _, one := range orphans {
		if err := db.objects.discard(one.id, one.suffix); err != nil {
			return fileError("remove an orphaned object", err)
		}
	}
	return nil
}

// overwriteDoubt makes the visible state final. A writer killed between its last write
// and its entry in the shared index leaves a whole commit in the log. It stays
// invisible while a process keeps the index alive, and appears once the log is read
// again, when its objects would be missing. Any commit overwrites it in the log, if it
// changes something: the library does not write unchanged pages.
func overwriteDoubt(c *conn) error {
	return sqlError("overwrite the end of the log", c.exec(`UPDATE meta SET value = value + 1 WHERE key = 'generation'`))
}

// removeOrphans removes every object file that no row names.
func (b *Blobs) removeOrphans(ctx context.Context) error {
	var orphans []leftover
	err := b.db.objects.walk(func(info fs.FileInfo, id blob.ID, suffix string) error {
		if time.Since(info.ModTime()) < orphanAge {
			return ctx.Err()
		}
		var named bool
		err := b.db.readers.with(ctx, func(c *conn) (err error) {
			named, err = rowNames(c, id, suffix)
			return err
		})
		if err == nil && !named {
			orphans = append(orphans, leftover{id, suffix})
		}
		return err
	})
	if err != nil {
		return ignoreMissing(err)
	}
	for page := range slices.Chunk(orphans, sweepPage) {
		if err := b.removeUnnamed(ctx, page); err != nil {
			return err
		}
	}
	return nil
}

// removeUnnamed removes object files without a row. A writer that ran into a full disk
// may still add the row. It cannot during a transaction, and afterwards it finds that
// the file is gone.
func (b *Blobs) removeUnnamed(ctx context.Context, orphans []leftover) error {
	return b.db.writer.do(&request{ctx: ctx, task: func(c *conn) error {
		for _, one := range orphans {
			if r := b.db.writer.find(one.id); r != nil && r.file == one.suffix {
				continue
			}
			named, err := rowNames(c, one.id, one.suffix)
			if err != nil {
				return sqlError("look for an object's row", err)
			}
			if named {
				continue
			}
			if err := b.db.objects.discard(one.id, one.suffix); err != nil {
				return fileError("remove an orphaned object", err)
			}
		}
		return nil
	}})
}

func rowNames(c *conn, id blob.ID, suffix string) (bool, error) {
	named := false
	err := c.query(`SELECT 1 FROM blobs WHERE id = ?1 AND file = ?2`, func(*sqlite3.Stmt) error {
		named = true
		return nil
	}, id[:], suffix)
	return named, err
}
