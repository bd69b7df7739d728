package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/stet-dev/stet/blob"
)

const (
	listPage  = 1000 // blobs that List reads at a time
	sweepPage = 500  // blobs that Sweep removes in one transaction
	// orphanAge keeps Sweep away from object files whose row is on its way.
	orphanAge = time.Hour
)

// List implements blob.Lister. What was put before is flushed first.
func (b *Blobs) List(ctx context.Context, after blob.ID, fn func(blob.Info) error) error {
	if err := b.Flush(ctx); err != nil {
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
	return uint64(gen), err
}

// dead is a blob that Sweep may remove.
type dead struct {
	base blob.ID
	size int64
	file string
}

// Sweep implements blob.Sweeper. Killed at any point, it leaves whole blobs
// only: dependants go before what they lean on.
func (b *Blobs) Sweep(ctx context.Context, generation uint64, opts blob.SweepOptions) (blob.SweepResult, error) {
	var result blob.SweepResult
	condemned, err := b.condemned(ctx, int64(generation), opts, &result)
	if err != nil {
		return result, err
	}
	if opts.DryRun {
		for _, d := range condemned {
			result.Removed++
			result.RemovedBytes += d.size
		}
		return result, nil
	}
	if err := b.removeAll(ctx, int64(generation), condemned, &result); err != nil {
		return result, err
	}
	return result, b.removeOrphans(ctx)
}

// condemned finds what may go: old, unneeded, and no base of what stays.
func (b *Blobs) condemned(ctx context.Context, generation int64, opts blob.SweepOptions, result *blob.SweepResult) (map[blob.ID]dead, error) {
	condemned := make(map[blob.ID]dead)
	staying := make(map[blob.ID]blob.ID) // a blob that stays → its base
	youngest := time.Now().Unix() - opts.GraceSeconds
	// One statement sees one state: rows that are replaced meanwhile change places.
	err := b.db.readers.with(ctx, func(c *conn) error {
		return c.query(`SELECT id, gen, born, size, base, file FROM blobs`, func(s *sqlite3.Stmt) error {
			var id, base blob.ID
			copy(id[:], s.ColumnRawBlob(0))
			copy(base[:], s.ColumnRawBlob(4))
			size := s.ColumnInt64(3)
			if s.ColumnInt64(1) < generation && s.ColumnInt64(2) <= youngest && !opts.Live(id) {
				condemned[id] = dead{base: base, size: size, file: s.ColumnText(5)}
				return ctx.Err()
			}
			result.Kept++
			result.KeptBytes += size
			if !base.IsZero() {
				staying[id] = base
			}
			return ctx.Err()
		})
	})
	if err != nil {
		return nil, b.db.readError(ctx, "look for unneeded blobs", err)
	}
	for _, base := range staying {
		for { // a reprieve passes on to what the base leans on
			d, isDead := condemned[base]
			if !isDead {
				break
			}
			delete(condemned, base)
			result.Kept++
			result.KeptBytes += d.size
			base = d.base
		}
	}
	return condemned, nil
}

// removeAll deletes in rounds, those first that nothing leans on. A blob that a
// commit has touched meanwhile is skipped by the condition on its generation.
func (b *Blobs) removeAll(ctx context.Context, generation int64, condemned map[blob.ID]dead, result *blob.SweepResult) error {
	for len(condemned) > 0 {
		before := len(condemned)
		page := make([]blob.ID, 0, sweepPage)
		for id := range condemned {
			page = append(page, id)
			if len(page) == sweepPage {
				if err := b.removePage(ctx, generation, page, condemned, result); err != nil {
					return err
				}
				page = page[:0]
			}
		}
		if err := b.removePage(ctx, generation, page, condemned, result); err != nil {
			return err
		}
		if len(condemned) == before {
			return nil // the rest was touched, or is leaned on again
		}
	}
	return nil
}

func (b *Blobs) removePage(ctx context.Context, generation int64, page []blob.ID, condemned map[blob.ID]dead, result *blob.SweepResult) error {
	var gone []blob.ID
	for _, id := range page {
		if d := condemned[id]; d.file != "" {
			if err := b.db.objects.condemn(id, d.file); err != nil {
				return fileError("prepare removal of an object file", err)
			}
		}
	}
	err := b.db.writer.do(&request{ctx: ctx, task: func(c *conn) error {
		gone = gone[:0]
		last, err := lastNumber(c)
		if err != nil {
			return err
		}
		for _, id := range page {
			// One that was replaced since names another file; the next sweep gets it.
			err := c.exec(`DELETE FROM blobs WHERE id = ?1 AND gen < ?2 AND coalesce(file, '') = ?3
				AND NOT EXISTS (SELECT 1 FROM blobs AS leaning WHERE leaning.base = ?1)`, id[:], generation, condemned[id].file)
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
		return err
	}
	for _, id := range gone {
		d := condemned[id]
		delete(condemned, id)
		result.Removed++
		result.RemovedBytes += d.size
		if d.file != "" {
			if err := b.db.objects.discard(id, d.file); err != nil {
				return fileError("remove an object file", err)
			}
		}
	}
	return nil
}

// leftover is an object with a second link that a killed process did not remove.
type leftover struct {
	id     blob.ID
	suffix string
}

// sweepOrphans tidies up after killed processes. The caller knows that nobody
// else writes to the store.
func (db *DB) sweepOrphans() error {
	var orphans []leftover
	err := db.objects.temporary(func(id blob.ID, suffix string) error {
		named, err := rowNames(db.writer.conn, id, suffix)
		if err != nil {
			return sqlError("look for an object's row", err)
		}
		if named {
			return fileError("remove a leftover link", db.objects.settle(id, suffix))
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

// overwriteDoubt makes what is visible now final. A writer that was killed
// between its last write and its entry in the shared index has left a whole
// commit in the log. Nobody sees it while a process keeps the index alive, and
// everybody once the log is read anew: its objects would be missed then. Any
// commit takes its place in the log, if it changes something: the library does
// not write what is the same.
func overwriteDoubt(c *conn) error {
	return sqlError("settle the log", c.exec(`UPDATE meta SET value = value + 1 WHERE key = 'generation'`))
}

// removeOrphans looks at every object file and removes those that no row names.
func (b *Blobs) removeOrphans(ctx context.Context) error {
	err := b.db.objects.walk(func(info fs.FileInfo, id blob.ID, suffix string) error {
		if time.Since(info.ModTime()) < orphanAge {
			return ctx.Err()
		}
		if r := b.db.writer.find(id); r != nil && r.file == suffix {
			return nil
		}
		var named bool
		err := b.db.readers.with(ctx, func(c *conn) (err error) {
			named, err = rowNames(c, id, suffix)
			return err
		})
		if err != nil || named {
			return err
		}
		return b.db.objects.discard(id, suffix)
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func rowNames(c *conn, id blob.ID, suffix string) (bool, error) {
	named := false
	err := c.query(`SELECT 1 FROM blobs WHERE id = ?1 AND file = ?2`, func(*sqlite3.Stmt) error {
		named = true
		return nil
	}, id[:], suffix)
	return named, err
}
