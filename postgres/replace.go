package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5"

	"github.com/stet-dev/stet/blob"
)

var _ blob.Replacer = (*Blobs)(nil)

// sqlReplace exchanges contents and tells which objects were named before.
const sqlReplace = `WITH old AS (SELECT id, coalesce(object, '') AS object FROM @blobs WHERE tenant = $1 AND id = ANY($2) ORDER BY id FOR UPDATE)
	UPDATE @blobs AS b SET size = n.size, object = n.object, data = n.data
	FROM unnest($2::bytea[], $3::bigint[], $4::text[], $5::bytea[]) AS n (id, size, object, data), old
	WHERE b.tenant = $1 AND b.id = n.id AND old.id = b.id RETURNING b.id, old.object`

// Replace implements blob.Replacer: one statement for all of them.
func (b *Blobs) Replace(ctx context.Context, blobs ...blob.Blob) error {
	fresh := make([]*record, 0, len(blobs))
	for _, one := range blobs {
		r, err := b.stage(ctx, one.ID, bytes.NewReader(one.Data), int64(len(one.Data)))
		if err != nil {
			return errors.Join(err, b.removeObjects(ctx, fresh))
		}
		fresh = append(fresh, r)
	}
	_, err := b.exchange(ctx, fresh)
	return err
}

// ReplaceFrom implements blob.Replacer.
func (b *Blobs) ReplaceFrom(ctx context.Context, id blob.ID, r io.Reader, size int64) error {
	fresh, err := b.stage(ctx, id, r, size)
	if err != nil {
		return err
	}
	replaced, err := b.exchange(ctx, []*record{fresh})
	if err == nil && replaced == 0 {
		err = blob.NotFound(id)
	}
	return err
}

// stage reads new content, a large one into an object that no row names yet.
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

// exchange points the rows at the new contents and removes the objects that are
// not needed any more. After an error a row may name the new object all the same:
// whichever is left over, the sweep of orphans removes.
func (b *Blobs) exchange(ctx context.Context, fresh []*record) (replaced int, err error) {
	if len(fresh) == 0 {
		return 0, ctx.Err()
	}
	if err := b.Flush(ctx); err != nil { // so that there are rows
		return 0, errors.Join(err, b.removeObjects(ctx, fresh))
	}
	old, err := b.replaceRows(ctx, fresh)
	if err != nil {
		return 0, b.t.db.wrap(ctx, "replace blobs", err)
	}
	unneeded := make([]*record, 0, len(fresh))
	for _, r := range fresh {
		object, there := old[r.id]
		switch {
		case !there: // nobody names the new one
			unneeded = append(unneeded, r)
		case object != r.object: // equal if the statement ran twice
			unneeded = append(unneeded, &record{object: object})
		}
	}
	return len(old), b.removeObjects(ctx, unneeded)
}

// replaceRows returns the objects of the rows that there were.
func (b *Blobs) replaceRows(ctx context.Context, fresh []*record) (map[blob.ID]string, error) {
	db := b.t.db
	ids, sizes := make([][]byte, len(fresh)), make([]int64, len(fresh))
	objects, contents := make([]*string, len(fresh)), make([][]byte, len(fresh))
	for i, r := range fresh {
		ids[i], sizes[i], contents[i] = r.id.Bytes(), r.size, r.data
		if r.object != "" {
			objects[i] = &r.object
		} else if r.data == nil {
			contents[i] = []byte{}
		}
	}
	var old map[blob.ID]string
	err := db.persist(ctx, func() error {
		old = make(map[blob.ID]string, len(fresh))
		rows, err := db.pool.Query(ctx, db.sql(sqlReplace), b.t.name, ids, sizes, objects, contents)
		if err != nil {
			return err
		}
		var id []byte
		var object string
		_, err = pgx.ForEachRow(rows, []any{&id, &object}, func() error {
			old[blob.ID(id)] = object
			return nil
		})
		return err
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
		return fmt.Errorf("remove objects that are not needed: %w", err)
	}
	return nil
}
