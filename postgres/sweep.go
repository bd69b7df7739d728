package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/kv"
)

const (
	listPage  = 1000 // blobs that are listed at a time
	sweepPage = 500  // blobs that Sweep removes in one transaction
)

func refBatch(ids ...blob.ID) *kv.Batch { return &kv.Batch{Refs: ids} }

// entry is a row of the table of blobs without its content.
type entry struct {
	id, base            blob.ID
	size, gen, storedAt int64
	object              string
}

// entries calls fn for every blob after an id, in order.
func (b *Blobs) entries(ctx context.Context, after blob.ID, fn func(entry) error) error {
	db := b.t.db
	for {
		var page []entry
		err := db.read(ctx, func() error {
			page = page[:0]
			rows, err := db.pool.Query(ctx, db.sql(`SELECT id, base, size, generation, stored_at, coalesce(object, '') FROM @blobs
				WHERE tenant = $1 AND id > $2 ORDER BY tenant, id LIMIT $3`), b.t.name, after[:], listPage)
			if err != nil {
				return err
			}
			var e entry
			var id, base []byte
			_, err = pgx.ForEachRow(rows, []any{&id, &base, &e.size, &e.gen, &e.storedAt, &e.object}, func() error {
				e.id, e.base = blob.ID{}, blob.ID{}
				copy(e.id[:], id)
				copy(e.base[:], base)
				page = append(page, e)
				return nil
			})
			return err
		})
		if err != nil {
			return db.wrap(ctx, "list blobs", err)
		}
		for _, e := range page {
			if err := fn(e); err != nil {
				return err
			}
		}
		if len(page) < listPage {
			return nil
		}
		after = page[len(page)-1].id
	}
}

// Info describes one stored blob, or returns an error that wraps
// blob.ErrNotFound.
func (b *Blobs) Info(ctx context.Context, id blob.ID) (blob.Info, error) {
	db, info := b.t.db, blob.Info{ID: id}
	var base []byte
	err := db.read(ctx, func() error {
		return db.pool.QueryRow(ctx, db.sql(`SELECT size, base FROM @blobs WHERE tenant = $1 AND id = $2`), b.t.name, id[:]).Scan(&info.Stored, &base)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return blob.Info{}, blob.NotFound(id)
	}
	copy(info.Base[:], base)
	return info, db.wrap(ctx, "look at blob "+id.String(), err)
}

// List implements blob.Lister. What was put before is flushed first.
func (b *Blobs) List(ctx context.Context, after blob.ID, fn func(blob.Info) error) error {
	if err := b.Flush(ctx); err != nil {
		return err
	}
	return b.entries(ctx, after, func(e entry) error {
		return fn(blob.Info{ID: e.id, Stored: e.size, Base: e.base})
	})
}

// Begin implements blob.Sweeper. It returns when every transaction that counts
// to an older generation has ended, on whatever node, so that what those refer
// to can be seen.
func (b *Blobs) Begin(ctx context.Context) (uint64, error) {
	if err := b.Flush(ctx); err != nil {
		return 0, err
	}
	db := b.t.db
	if _, err := b.t.prepare(ctx); err != nil {
		return 0, db.wrap(ctx, "begin a generation", err)
	}
	var gen int64
	err := db.persist(ctx, func() error {
		return db.pool.QueryRow(ctx, db.sql(`INSERT INTO @generations (tenant, generation)
			SELECT $1::text, max(generation) + 1 FROM @generations WHERE tenant = $1::text RETURNING generation`), b.t.name).Scan(&gen)
	})
	b.t.newGeneration(gen)
	if err == nil {
		err = db.persist(ctx, func() error {
			_, err := db.pool.Exec(ctx, db.sql(`DELETE FROM @generations WHERE tenant = $1 AND generation < $2`), b.t.name, gen)
			return err
		})
	}
	return uint64(gen), db.wrap(ctx, "begin a generation", err)
}

// persist repeats a statement that others were in the way of, or that the
// connection broke under. It must not matter whether it happens twice.
func (db *DB) persist(ctx context.Context, statement func() error) error {
	deadline := time.Now().Add(db.opts.RetryFor)
	for {
		err := db.read(ctx, statement)
		switch pgCode(err) {
		case codeUnique, codeSerialization, codeDeadlock, codeLockTimeout:
		default:
			return err
		}
		if ctx.Err() != nil || time.Now().After(deadline) {
			return err
		}
		if err := db.pause(10 * time.Millisecond); err != nil {
			return err
		}
	}
}

// Sweep implements blob.Sweeper. Killed at any point, it leaves whole blobs
// only: dependants go before what they lean on, and rows before objects.
func (b *Blobs) Sweep(ctx context.Context, generation uint64, opts blob.SweepOptions) (blob.SweepResult, error) {
	var result blob.SweepResult
	if err := b.checkSweep(ctx, generation, opts); err != nil {
		return result, err
	}
	condemned, err := b.condemned(ctx, int64(generation), opts, &result)
	if err != nil {
		return result, err
	}
	if opts.DryRun {
		for _, e := range condemned {
			result.Removed++
			result.RemovedBytes += e.size
		}
		return result, nil
	}
	return result, b.removeAll(ctx, int64(generation), condemned, &result)
}

// checkSweep refuses what would remove too much, and makes sure that whatever
// was put through this node is stored.
func (b *Blobs) checkSweep(ctx context.Context, generation uint64, opts blob.SweepOptions) error {
	if opts.Live == nil {
		return errors.New("sweep blobs: SweepOptions.Live is nil")
	}
	if err := b.Flush(ctx); err != nil {
		return err
	}
	var latest int64
	db := b.t.db
	err := db.read(ctx, func() error {
		return db.pool.QueryRow(ctx, db.sql(`SELECT coalesce(max(generation), 0) FROM @generations WHERE tenant = $1`), b.t.name).Scan(&latest)
	})
	if err != nil {
		return db.wrap(ctx, "sweep blobs", err)
	}
	if generation > uint64(latest) {
		return fmt.Errorf("sweep blobs: generation %d was not opened, the latest is %d", generation, latest)
	}
	return nil
}

// condemned finds what may go: old, unneeded, and no base of what stays.
func (b *Blobs) condemned(ctx context.Context, generation int64, opts blob.SweepOptions, result *blob.SweepResult) (map[blob.ID]entry, error) {
	condemned := make(map[blob.ID]entry)
	staying := make(map[blob.ID]blob.ID) // a blob that stays → its base
	youngest := time.Now().Unix() - opts.GraceSeconds
	err := b.entries(ctx, blob.ID{}, func(e entry) error {
		if e.gen < generation && e.storedAt <= youngest && !opts.Live(e.id) {
			condemned[e.id] = e
			return nil
		}
		result.Kept++
		result.KeptBytes += e.size
		if !e.base.IsZero() {
			staying[e.id] = e.base
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, base := range staying {
		for { // a reprieve passes on to what the base leans on
			e, isDead := condemned[base]
			if !isDead {
				break
			}
			delete(condemned, base)
			result.Kept++
			result.KeptBytes += e.size
			base = e.base
		}
	}
	return condemned, nil
}

// removeAll deletes in rounds, those first that nothing leans on. A blob that a
// commit has touched meanwhile is skipped by the condition on its generation.
func (b *Blobs) removeAll(ctx context.Context, generation int64, condemned map[blob.ID]entry, result *blob.SweepResult) error {
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

func (b *Blobs) removePage(ctx context.Context, generation int64, page []blob.ID, condemned map[blob.ID]entry, result *blob.SweepResult) error {
	if len(page) == 0 {
		return nil
	}
	db := b.t.db
	var gone []entry
	err := db.persist(ctx, func() error {
		gone = gone[:0]
		rows, err := db.pool.Query(ctx, db.sql(sqlSweep), b.t.name, idBytes(page), generation)
		if err != nil {
			return err
		}
		var id []byte
		var object string
		_, err = pgx.ForEachRow(rows, []any{&id, &object}, func() error {
			gone = append(gone, entry{id: blob.ID(id), object: object})
			return nil
		})
		return err
	})
	if err != nil {
		return db.wrap(ctx, "remove blobs", err)
	}
	var objects []string
	b.t.forget(page, nil)
	for _, e := range gone {
		result.Removed++
		result.RemovedBytes += condemned[e.id].size
		delete(condemned, e.id)
		if e.object != "" {
			objects = append(objects, e.object)
		}
	}
	if len(objects) == 0 || db.opts.Objects == nil {
		return nil
	}
	if err := db.opts.Objects.RemoveObjects(ctx, objects...); err != nil {
		return fmt.Errorf("remove objects of blobs that are gone: %w", err)
	}
	return nil
}
