package postgres

import (
	"context"
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
	q := &question{id: id, bare: true}
	if err := b.t.ask(ctx, q); err != nil {
		return blob.Info{}, b.t.db.wrap(ctx, "look at blob "+id.String(), err)
	}
	if q.blob == nil {
		return blob.Info{}, blob.NotFound(id)
	}
	info := blob.Info{ID: id, Stored: q.blob.size}
	copy(info.Base[:], q.blob.base)
	return info, nil
}

// List implements blob.Lister. It flushes pending blobs first.
func (b *Blobs) List(ctx context.Context, after blob.ID, fn func(blob.Info) error) error {
	if err := b.Flush(ctx); err != nil {
		return err
	}
	return b.entries(ctx, after, func(e entry) error {
		return fn(blob.Info{ID: e.id, Stored: e.size, Base: e.base})
	})
}

// Begin implements blob.Sweeper. It returns once every transaction of an older
// generation has ended on all nodes, so that their references are visible.
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

// persist repeats a statement that failed because of other transactions or a broken
// connection. The statement must be idempotent.
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

// Sweep implements blob.Sweeper. If it is killed, only whole blobs are left: it
// removes blobs before their bases, and rows before objects.
func (b *Blobs) Sweep(ctx context.Context, generation uint64, opts blob.SweepOptions) (blob.SweepResult, error) {
	plan, err := b.planSweep(ctx, generation, opts)
	if err != nil {
		return blob.SweepResult{}, err
	}
	return plan.Remove(sweepPage, func(page []blob.ID) ([]blob.ID, error) {
		return b.removePage(ctx, int64(generation), page)
	})
}

// planSweep scans all blobs, including pending ones of this node.
func (b *Blobs) planSweep(ctx context.Context, generation uint64, opts blob.SweepOptions) (*blob.SweepPlan, error) {
	if err := b.Flush(ctx); err != nil {
		return nil, err
	}
	var latest int64
	db := b.t.db
	err := db.read(ctx, func() error {
		return db.pool.QueryRow(ctx, db.sql(`SELECT coalesce(max(generation), 0) FROM @generations WHERE tenant = $1`), b.t.name).Scan(&latest)
	})
	if err != nil {
		return nil, db.wrap(ctx, "sweep blobs", err)
	}
	plan, err := blob.NewSweepPlan(generation, uint64(latest), opts)
	if err != nil {
		return nil, err
	}
	youngest := time.Now().Unix() - opts.GraceSeconds
	return plan, b.entries(ctx, blob.ID{}, func(e entry) error {
		plan.Look(blob.Info{ID: e.id, Stored: e.size, Base: e.base}, e.gen < int64(generation) && e.storedAt <= youngest)
		return nil
	})
}

// removePage deletes the blobs that nothing leans on. The condition on the generation
// skips blobs that a commit has touched meanwhile.
func (b *Blobs) removePage(ctx context.Context, generation int64, page []blob.ID) ([]blob.ID, error) {
	db := b.t.db
	var gone []blob.ID
	var objects []string
	err := db.persist(ctx, func() error {
		gone, objects = gone[:0], objects[:0]
		rows, err := db.pool.Query(ctx, db.sql(sqlSweep), b.t.name, idBytes(page), generation)
		if err != nil {
			return err
		}
		var id []byte
		var object string
		_, err = pgx.ForEachRow(rows, []any{&id, &object}, func() error {
			gone = append(gone, blob.ID(id))
			if object != "" {
				objects = append(objects, object)
			}
			return nil
		})
		return err
	})
	if err != nil {
		return nil, db.wrap(ctx, "remove blobs", err)
	}
	b.t.forget(page, nil)
	if len(objects) == 0 || db.opts.Objects == nil {
		return gone, nil
	}
	if err := db.opts.Objects.RemoveObjects(ctx, objects...); err != nil {
		return gone, fmt.Errorf("remove objects of removed blobs: %w", err)
	}
	return gone, nil
}
