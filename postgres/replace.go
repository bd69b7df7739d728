package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stet-dev/stet/blob"
)

var _ blob.Rewriter = (*Blobs)(nil)

const (
	// sqlReplace replaces contents and bases, or with $7 only contents, and returns
	// the objects named before.
	sqlReplace = `WITH old AS (SELECT id, coalesce(object, '') AS object FROM @blobs WHERE tenant = $1 AND id = ANY($2) ORDER BY id FOR UPDATE)
	UPDATE @blobs AS b SET size = n.size, object = n.object, data = n.data, base = CASE WHEN $7::boolean THEN b.base ELSE n.base END
	FROM unnest($2::bytea[], $3::bigint[], $4::text[], $5::bytea[], $6::bytea[]) AS n (id, size, object, data, base), old
	WHERE b.tenant = $1 AND b.id = n.id AND old.id = b.id RETURNING b.id, old.object`

	sqlLockBlobs = `SELECT id FROM @blobs WHERE tenant = $1 AND id = ANY($2) ORDER BY id FOR UPDATE`
	// UNION, unlike UNION ALL, ends in a cycle, which only damage can create.
	sqlChains = `WITH RECURSIVE chain AS (
		SELECT id, base FROM @blobs WHERE tenant = $1 AND id = ANY($2)
		UNION SELECT b.id, b.base FROM @blobs AS b JOIN chain ON b.id = chain.base WHERE b.tenant = $1)
	SELECT id, base FROM chain`
)

// Replace implements blob.Replacer with one statement, or with a transaction if there
// are new bases.
func (b *Blobs) Replace(ctx context.Context, blobs ...blob.Blob) error {
	fresh := make([]*record, 0, len(blobs))
	for _, one := range blobs {
		r, err := b.stage(ctx, one.ID, bytes.NewReader(one.Data), int64(len(one.Data)))
		if err != nil {
			return errors.Join(err, b.removeObjects(ctx, fresh))
		}
		r.base = one.Base
		fresh = append(fresh, r)
	}
	_, err := b.exchange(ctx, fresh, false)
	return err
}

// ReplaceFrom implements blob.Replacer.
func (b *Blobs) ReplaceFrom(ctx context.Context, id blob.ID, r io.Reader, size int64) error {
	fresh, err := b.stage(ctx, id, r, size)
	if err != nil {
		return err
	}
	replaced, err := b.exchange(ctx, []*record{fresh}, true)
	if err == nil && replaced == 0 {
		err = blob.NotFound(id)
	}
	return err
}

// Kept implements blob.Rewriter.
func (b *Blobs) Kept(ctx context.Context, id blob.ID) (blob.Blob, error) {
	p, err := b.load(ctx, id, b.row)
	if err != nil {
		return blob.Blob{}, err
	}
	return blob.Blob{ID: id, Data: p.data, Base: p.base, Given: true}, nil
}

// Inline is Kept for a blob whose content is in the database. It reports false for one in
// the bucket, which may be too large to be held.
func (b *Blobs) Inline(ctx context.Context, id blob.ID) (blob.Blob, bool, error) {
	p, err := b.row(ctx, id)
	if err != nil || p.object != "" {
		return blob.Blob{}, false, err
	}
	return blob.Blob{ID: id, Data: p.data, Base: p.base, Given: true}, true, nil
}

// stage reads new content. Large content goes into an object that no row names yet.
func (b *Blobs) stage(ctx context.Context, id blob.ID, r io.Reader, size int64) (*record, error) {
	fresh := &record{id: id, size: size}
	var err error
	switch {
	case b.large(size):
		fresh.object = b.t.newObjectKey(id)
		err = b.t.db.opts.Objects.PutObject(ctx, fresh.object, r, size)
	case size > maxInDatabase:
		err = blob.ErrTooLarge
	default:
		fresh.data, err = blob.ReadExactly(r, size)
	}
	if err != nil {
		return nil, fmt.Errorf("replace blob %s: %w", id, err)
	}
	return fresh, nil
}

// exchange points the rows at the new contents and removes the old objects. After an
// error a row may still name the new object; the sweep of orphans removes whichever
// is left over.
func (b *Blobs) exchange(ctx context.Context, fresh []*record, keepBases bool) (replaced int, err error) {
	if len(fresh) == 0 {
		return 0, ctx.Err()
	}
	if err := b.Flush(ctx); err != nil { // so that the rows exist
		return 0, errors.Join(err, b.removeObjects(ctx, fresh))
	}
	old, err := b.replaceRows(ctx, fresh, keepBases)
	if err != nil {
		return 0, b.t.db.wrap(ctx, "replace blobs", err)
	}
	unneeded := make([]*record, 0, len(fresh))
	for _, r := range fresh {
		object, there := old[r.id]
		switch {
		case !there: // nothing names the new one
			unneeded = append(unneeded, r)
		case object != r.object: // equal if the statement ran twice
			unneeded = append(unneeded, &record{object: object})
		}
	}
	return len(old), b.removeObjects(ctx, unneeded)
}

// replaceRows returns the old objects of the replaced rows.
func (b *Blobs) replaceRows(ctx context.Context, fresh []*record, keepBases bool) (old map[blob.ID]string, err error) {
	db := b.t.db
	err = db.persist(ctx, func() error {
		if !slices.ContainsFunc(fresh, func(r *record) bool { return !r.base.IsZero() }) {
			old, err = b.updateRows(ctx, db.pool, fresh, keepBases)
			return err
		}
		for { // until the generation stays while we wait for it
			old, err = b.replaceLeaning(ctx, fresh)
			if !errors.Is(err, pgx.ErrNoRows) {
				return err
			}
			if err := db.pause(time.Millisecond); err != nil {
				return err
			}
		}
	})
	return old, err
}

// replaceLeaning replaces blobs of which some get a base, one transaction per tenant
// at a time, so that no two create a cycle. As for a new blob, a base is locked and
// moved to the current generation, which is held: a sweep has either removed it
// before, or keeps it.
func (b *Blobs) replaceLeaning(ctx context.Context, fresh []*record) (old map[blob.ID]string, err error) {
	db := b.t.db
	if _, err := b.t.prepare(ctx); err != nil {
		return nil, err
	}
	err = pgx.BeginFunc(ctx, db.pool, func(tx pgx.Tx) error {
		var generation int64
		held, err := tx.Exec(ctx, db.sql(sqlHoldTenant), b.t.name)
		if err == nil && held.RowsAffected() != 1 {
			err = pgx.ErrNoRows
		}
		if err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, db.sql(sqlHold), b.t.name).Scan(&generation); err != nil {
			return err
		}
		var bases, all [][]byte
		for _, r := range fresh {
			all = append(all, r.id.Bytes())
			if !r.base.IsZero() {
				bases = append(bases, r.base.Bytes())
			}
		}
		all = append(all, bases...)
		if _, err := tx.Exec(ctx, db.sql(sqlLockBlobs), b.t.name, all); err != nil {
			return err
		}
		// A separate statement sees the changes of earlier lock holders.
		links, err := b.links(ctx, tx, all)
		if err != nil {
			return err
		}
		firm := standing(fresh, links)
		if _, err := tx.Exec(ctx, db.sql(sqlTouch), b.t.name, bases, generation); err != nil {
			return err
		}
		old, err = b.updateRows(ctx, tx, firm, false)
		return err
	})
	return old, err
}

// links returns the bases of blobs, and the bases of those.
func (b *Blobs) links(ctx context.Context, tx pgx.Tx, ids [][]byte) (map[blob.ID]blob.ID, error) {
	rows, err := tx.Query(ctx, b.t.db.sql(sqlChains), b.t.name, ids)
	if err != nil {
		return nil, err
	}
	links := make(map[blob.ID]blob.ID)
	var id, base []byte
	_, err = pgx.ForEachRow(rows, []any{&id, &base}, func() error {
		var to blob.ID
		copy(to[:], base)
		links[blob.ID(id)] = to
		return nil
	})
	return links, err
}

// standing returns the blobs that can be replaced one after the other: the new base
// and its own bases exist, and the blob is not among them.
func standing(fresh []*record, links map[blob.ID]blob.ID) []*record {
	firm := make([]*record, 0, len(fresh))
	for _, r := range fresh {
		was, stored := links[r.id]
		if !stored || r.base != was && !mayLean(r.id, r.base, links) {
			continue
		}
		links[r.id] = r.base
		firm = append(firm, r)
	}
	return firm
}

func mayLean(id, base blob.ID, links map[blob.ID]blob.ID) bool {
	for range links {
		if base.IsZero() {
			return true
		}
		next, stored := links[base]
		if base == id || !stored {
			return false
		}
		base = next
	}
	return base.IsZero()
}

// querier is a pool or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// updateRows returns the objects of the existing rows.
func (b *Blobs) updateRows(ctx context.Context, in querier, fresh []*record, keepBases bool) (map[blob.ID]string, error) {
	old := make(map[blob.ID]string, len(fresh))
	if len(fresh) == 0 {
		return old, nil
	}
	ids, sizes := make([][]byte, len(fresh)), make([]int64, len(fresh))
	objects, contents, bases := make([]*string, len(fresh)), make([][]byte, len(fresh)), make([][]byte, len(fresh))
	for i, r := range fresh {
		ids[i], sizes[i], contents[i], bases[i] = r.id.Bytes(), r.size, r.data, r.baseBytes()
		if r.object != "" {
			objects[i] = &r.object
		} else if r.data == nil {
			contents[i] = []byte{}
		}
	}
	rows, err := in.Query(ctx, b.t.db.sql(sqlReplace), b.t.name, ids, sizes, objects, contents, bases, keepBases)
	if err != nil {
		return old, err
	}
	var id []byte
	var object string
	_, err = pgx.ForEachRow(rows, []any{&id, &object}, func() error {
		old[blob.ID(id)] = object
		return nil
	})
	return old, err
}

func (b *Blobs) removeObjects(ctx context.Context, records []*record) error {
	var keys []string
	for _, r := range records {
		if r.object != "" {
			keys = append(keys, r.object)
		}
	}
	if len(keys) == 0 || b.t.db.opts.Objects == nil {
		return nil
	}
	if err := b.t.db.opts.Objects.RemoveObjects(ctx, keys...); err != nil {
		return fmt.Errorf("remove unneeded objects: %w", err)
	}
	return nil
}
