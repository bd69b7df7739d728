package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/stet-dev/stet/blob"
)

// Blobs is the blob.Store of a DB. It also implements blob.Streamer,
// blob.Lister and blob.Sweeper.
type Blobs struct{ db *DB }

// Blobs returns the store of blobs.
func (db *DB) Blobs() *Blobs { return &Blobs{db: db} }

// cloneContent never returns nil, which would be stored as NULL. Append does not clear
// the memory first; make would.
func cloneContent(data []byte) []byte { return append([]byte{}, data...) }

// Put implements blob.Store.
func (b *Blobs) Put(ctx context.Context, blobs ...blob.Blob) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := b.checkBases(ctx, blobs); err != nil {
		return err
	}
	recs := make([]*record, 0, len(blobs))
	for _, one := range blobs {
		whole, err := blob.Whole(ctx, b, one)
		if err != nil {
			return err
		}
		if len(whole.Data) >= b.db.opts.ObjectSize {
			if err := b.putObject(ctx, whole.ID, whole.Base, bytes.NewReader(whole.Data), int64(len(whole.Data))); err != nil {
				return err
			}
			continue
		}
		data := whole.Data
		if !whole.Given || data == nil {
			data = cloneContent(data)
		}
		recs = append(recs, &record{id: whole.ID, base: whole.Base, size: int64(len(data)), data: data})
	}
	return b.db.writer.put(ctx, recs)
}

// checkBases rejects blobs that could never be read. A base may come in the same call,
// before the blobs that lean on it.
func (b *Blobs) checkBases(ctx context.Context, blobs []blob.Blob) error {
	var bases []blob.ID
	var leaning []int
	before := make(map[blob.ID]bool, len(blobs))
	for i, one := range blobs {
		if !one.Base.IsZero() && !before[one.Base] {
			bases, leaning = append(bases, one.Base), append(leaning, i)
		}
		before[one.ID] = true
	}
	if len(bases) == 0 || b.db.writer.certain(bases) {
		return nil
	}
	has, err := b.Has(ctx, bases...)
	if err != nil {
		return err
	}
	for k, i := range leaning {
		if !has[k] {
			return fmt.Errorf("store blob %s: its base: %w", blobs[i].ID, blob.NotFound(bases[k]))
		}
	}
	return nil
}

// putObject writes a large blob's file in the caller's goroutine and queues its row.
func (b *Blobs) putObject(ctx context.Context, id, base blob.ID, r io.Reader, size int64) error {
	has, err := b.Has(ctx, id)
	if err != nil {
		return err
	}
	if has[0] { // still an error if the source does not match
		if err := checkSize(r, size); err != nil {
			return err
		}
		return b.db.writer.put(ctx, []*record{{id: id, renewal: true}})
	}
	if b.db.opts.ReadOnly {
		return b.putScratch(ctx, id, base, r, size)
	}
	suffix, err := b.db.objects.write(id, r, size)
	if err != nil {
		if errors.Is(err, errSync) {
			b.db.writer.noteFailure(err)
		}
		return fmt.Errorf("store blob %s: %w", id, err)
	}
	if err := b.db.writer.put(ctx, []*record{{id: id, base: base, size: size, file: suffix}}); err != nil {
		return errors.Join(err, b.db.objects.discard(id, suffix))
	}
	return nil
}

// putScratch holds a large blob in memory when the store is read-only.
func (b *Blobs) putScratch(ctx context.Context, id, base blob.ID, r io.Reader, size int64) error {
	if size > int64(b.db.opts.Scratch) {
		return b.db.Refusal()
	}
	data, err := blob.ReadExactly(r, size)
	if err != nil {
		return fmt.Errorf("store blob %s: %w", id, err)
	}
	return b.db.writer.put(ctx, []*record{{id: id, base: base, size: size, data: data}})
}

func checkSize(r io.Reader, size int64) error {
	n, err := io.Copy(io.Discard, io.LimitReader(r, size+1))
	if err == nil && n != size {
		err = fmt.Errorf("%w: source has %d bytes or more, want %d", blob.ErrMismatch, n, size)
	}
	return err
}

// Flush implements blob.Store.
func (b *Blobs) Flush(ctx context.Context) error {
	if b.db.opts.ReadOnly {
		return errors.Join(ctx.Err(), b.db.writer.scratched())
	}
	return b.db.writer.flush(ctx)
}

// written is Flush for callers that only need rows for what was put. It leaves errors
// about lost blobs to callers that ask for durability.
func (b *Blobs) written(ctx context.Context) error {
	if b.db.opts.ReadOnly {
		return ctx.Err()
	}
	return b.db.writer.do(&request{ctx: ctx})
}

// PutFrom implements blob.Streamer.
func (b *Blobs) PutFrom(ctx context.Context, id blob.ID, r io.Reader, size int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if size >= int64(b.db.opts.ObjectSize) {
		return b.putObject(ctx, id, blob.ID{}, r, size)
	}
	data, err := blob.ReadExactly(r, size)
	if err != nil {
		return fmt.Errorf("store blob %s: %w", id, err)
	}
	return b.Put(ctx, blob.Blob{ID: id, Data: data})
}
