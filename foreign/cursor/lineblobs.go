package cursor

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/stet-dev/stet/blob"
)

// lineBlobs are the blobs of a store of lines. Each call reads the file; such stores
// are small, and their files may grow meanwhile.
type lineBlobs struct{ lines *lineStore }

// Get returns a blob whose bytes match its id.
func (b *lineBlobs) Get(ctx context.Context, id blob.ID) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	result := blob.NotFound(id)
	for item, err := range b.lines.blobs(ctx) {
		if err != nil && ofLine(err) {
			return nil, errors.Join(result, err) // it may be in the unread part
		}
		if err != nil {
			return nil, err
		}
		if item.id != id {
			continue
		}
		data, err := decodeBlob(id, Value{ClassBlob, item.data})
		if err == nil {
			return data, nil
		}
		result = err
	}
	return nil, result
}

// ofLine reports whether an error concerns lines that are not objects, which hold no
// blobs.
func ofLine(err error) bool { return errors.Is(err, ErrMalformed) || errors.Is(err, blob.ErrTooLarge) }

// Has reports which blobs have a line.
func (b *lineBlobs) Has(ctx context.Context, ids ...blob.ID) ([]bool, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	there := map[blob.ID]bool{}
	for item, err := range b.lines.blobs(ctx) {
		if err != nil && !ofLine(err) {
			return nil, err
		}
		if err == nil {
			there[item.id] = true
		}
	}
	out := make([]bool, len(ids))
	for i, id := range ids {
		out[i] = there[id]
	}
	return out, nil
}

// List lists the blobs by id.
func (b *lineBlobs) List(ctx context.Context, after blob.ID, fn func(blob.Info) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	sizes := map[blob.ID]int64{}
	for item, err := range b.lines.blobs(ctx) {
		if err != nil && !ofLine(err) {
			return err
		}
		if err == nil {
			sizes[item.id] = int64(len(item.data))
		}
	}
	ids := make([]blob.ID, 0, len(sizes))
	for id := range sizes {
		if id.Compare(after) > 0 {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, blob.ID.Compare)
	for _, id := range ids {
		if err := fn(blob.Info{ID: id, Stored: sizes[id]}); err != nil {
			return err
		}
	}
	return nil
}

// Put fails: the store is read-only.
func (b *lineBlobs) Put(ctx context.Context, _ ...blob.Blob) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return fmt.Errorf("put into %s: %w", b.lines.dir, blob.ErrReadOnly)
}

// Flush has nothing to do.
func (b *lineBlobs) Flush(ctx context.Context) error { return ctx.Err() }
