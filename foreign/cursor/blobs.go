package cursor

import (
	"bytes"
	"context"
	"fmt"

	"github.com/stet-dev/stet/blob"
)

// Blobs returns a view of the blobs in the store. Contents are checked against their
// ids, whatever the form of the row. Put works with Options.Write on a state.vscdb or
// a store.db, and is durable when it returns; otherwise it fails with
// blob.ErrReadOnly.
func (s *Store) Blobs() Blobs {
	if t := s.blobTable(); t != nil {
		return t
	}
	switch s.kind {
	case KindSDK:
		return &unionBlobs{stores: s.agents}
	case KindLines:
		return &lineBlobs{lines: s.lines}
	}
	return &unionBlobs{stores: &agentStores{}}
}

// Blobs is a view of blobs that can also be enumerated.
type Blobs interface {
	blob.Store
	blob.Lister
}

// blobTable returns the blobs of a store that keeps them in one table, or nil.
func (s *Store) blobTable() *tableBlobs {
	switch {
	case s.kind == KindAgent:
		return agentBlobs(s.main)
	case s.kind == KindEditor && s.tables[diskTable.name]:
		return &tableBlobs{db: s.main, table: diskTable, prefix: BlobPrefix, emptyAs: []byte{0}}
	}
	return nil
}

// tableBlobs are the blobs of one table.
type tableBlobs struct {
	db      *database
	table   table
	prefix  string
	emptyAs []byte // stored form of an empty blob
}

func (b *tableBlobs) key(id blob.ID) string { return b.prefix + id.String() }

// Get returns the content of a blob.
func (b *tableBlobs) Get(ctx context.Context, id blob.ID) ([]byte, error) {
	v, err := b.db.get(ctx, b.table, b.key(id))
	if err != nil {
		if damaged(err) {
			err = fmt.Errorf("%w: %w", blob.ErrCorrupt, err)
		}
		return nil, fmt.Errorf("get blob %s: %w", id, err)
	}
	data, err := decodeBlob(id, v)
	if err != nil {
		if plain, ok := b.unseal(ctx, id, v); ok {
			return plain, nil
		}
		if !b.db.opts.Key.IsZero() && v.Class == ClassBlob && len(v.Data) >= sealedOverhead {
			err = fmt.Errorf("%w: %w", ErrWrongKey, err)
		}
	}
	return data, err
}

// Has reports which blobs have a row that is not a tombstone.
func (b *tableBlobs) Has(ctx context.Context, ids ...blob.ID) ([]bool, error) {
	out := make([]bool, len(ids))
	const chunk = 512 // keeps each transaction short
	for start := 0; start < len(ids); start += chunk {
		end := min(start+chunk, len(ids))
		err := b.db.read(ctx, func(c *conn) error {
			for i := start; i < end; i++ {
				var err error
				if out[i], err = b.has(c, ids[i]); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return out, ctx.Err()
}

func (b *tableBlobs) has(c *conn, id blob.ID) (bool, error) {
	s, err := c.stmt("SELECT 1 FROM " + b.table.name + " WHERE " + b.table.key + " = ?1 AND typeof(" + b.table.value + ") <> 'null'")
	if err != nil {
		return false, err
	}
	if err := s.BindText(1, b.key(id)); err != nil {
		return false, err
	}
	found := s.Step()
	err = s.Err()
	s.Reset()
	return found, err
}

// List lists the blobs by id. It skips tombstones and rows whose key is not an id.
func (b *tableBlobs) List(ctx context.Context, after blob.ID, fn func(blob.Info) error) error {
	r := keyRange{}
	if b.prefix != "" {
		r = prefixRange(b.prefix)
	}
	if !after.IsZero() {
		r.start = b.key(after) + "\x00"
	}
	for row, err := range b.db.scan(ctx, b.table, r, scanSizes) {
		if err != nil {
			return err
		}
		id, ok := b.parseKey(row.key)
		if !ok || id.IsZero() || row.value.Absent() {
			continue
		}
		if err := fn(blob.Info{ID: id, Stored: row.size}); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// parseKey reads the id in a key, which must be in the form that Get uses.
func (b *tableBlobs) parseKey(key string) (blob.ID, bool) {
	id, err := blob.ParseID(key[len(b.prefix):])
	return id, err == nil && b.key(id) == key
}

// Put adds rows in one transaction. Intact rows stay; tombstones and damaged rows are
// replaced.
func (b *tableBlobs) Put(ctx context.Context, blobs ...blob.Blob) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !b.db.opts.Write {
		return fmt.Errorf("put into %s: %w", b.db.path, blob.ErrReadOnly)
	}
	whole := make([]blob.Blob, len(blobs))
	for i, item := range blobs {
		var err error
		if whole[i], err = wholeOf(ctx, b, item, whole[:i]); err != nil {
			return err
		}
		if got := blob.Sum(whole[i].Data); got != item.ID {
			return &blob.MismatchError{Want: item.ID, Got: got}
		}
	}
	return b.db.write(ctx, func(c *conn) error {
		for _, item := range whole {
			if err := b.put(c, item); err != nil {
				return fmt.Errorf("put blob %s: %w", item.ID, err)
			}
		}
		return nil
	})
}

// wholeOf completes a blob that extends another, which may be in the same Put.
func wholeOf(ctx context.Context, s blob.Store, item blob.Blob, earlier []blob.Blob) (blob.Blob, error) {
	for _, e := range earlier {
		if item.Keep > 0 && e.ID == item.Like && int64(len(e.Data)) >= item.Keep {
			item.Data = append(bytes.Clone(e.Data[:item.Keep]), item.Data...)
			item.Keep = 0
			return item, nil
		}
	}
	return blob.Whole(ctx, s, item)
}

func (b *tableBlobs) put(c *conn, item blob.Blob) error {
	old, err := c.get(b.table, b.key(item.ID))
	if err != nil {
		return err
	}
	if _, err := decodeBlob(item.ID, old); err == nil {
		return nil
	}
	data := item.Data
	if len(data) == 0 {
		data = b.emptyAs
	}
	return c.putValue(b.table, b.key(item.ID), data)
}

// Flush has nothing to do: Put commits.
func (b *tableBlobs) Flush(ctx context.Context) error { return ctx.Err() }
