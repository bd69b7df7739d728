package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/stet-dev/stet/blob"
)

// Blobs is the blob.Store of a DB. It also implements blob.Streamer,
// blob.Lister and blob.Sweeper.
type Blobs struct{ db *DB }

// Blobs returns the store of blobs.
func (db *DB) Blobs() *Blobs { return &Blobs{db: db} }

// place is where a blob's content is: in memory, or in a file.
type place struct {
	data []byte
	file string
	size int64
}

// Get implements blob.Store.
func (b *Blobs) Get(ctx context.Context, id blob.ID) ([]byte, error) {
	p, err := b.find(ctx, id)
	if err != nil {
		return nil, err
	}
	if p.file == "" {
		return p.data, nil
	}
	f, err := b.openObject(ctx, id, p)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data := make([]byte, p.size)
	if n, err := io.ReadFull(f, data); err != nil {
		return nil, blob.Corrupt(id, "object file has %d bytes, want %d", n, p.size)
	}
	return data, nil
}

// find looks a blob up, first among those on their way to the disk.
func (b *Blobs) find(ctx context.Context, id blob.ID) (place, error) {
	if err := ctx.Err(); err != nil {
		return place{}, err
	}
	if r := b.db.writer.find(id); r != nil {
		return place{data: cloneContent(r.data), file: r.file, size: r.size}, nil
	}
	var p place
	found := false
	err := b.db.readers.with(ctx, func(c *conn) error {
		s, err := c.stmt(`SELECT file, size, data FROM blobs WHERE id = ?1`)
		if err != nil {
			return err
		}
		defer s.Reset()
		if err := s.BindBlob(1, id[:]); err != nil {
			return err
		}
		if s.Step() {
			found = true
			p = place{file: s.ColumnText(0), size: s.ColumnInt64(1)}
			if p.file == "" {
				p.data = s.ColumnBlob(2, make([]byte, 0, p.size))
			}
		}
		return s.Err()
	})
	if err != nil {
		return place{}, b.db.readError(ctx, "read blob "+id.String(), err)
	}
	if !found {
		return place{}, blob.NotFound(id)
	}
	if p.file == "" && int64(len(p.data)) != p.size {
		return place{}, blob.Corrupt(id, "row has %d bytes, want %d", len(p.data), p.size)
	}
	return p, nil
}

// cloneContent never returns nil, which would be stored as NULL. Appending to a
// slice without room, unlike making one of the right size, does not clear first
// what is overwritten at once.
func cloneContent(data []byte) []byte { return append([]byte{}, data...) }

// openObject opens a blob's file. Where a collector removed it between the look
// at the row and this call, the row is gone too, and that is what counts.
func (b *Blobs) openObject(ctx context.Context, id blob.ID, p place) (io.ReadCloser, error) {
	f, err := b.db.objects.open(id, p.file)
	if errors.Is(err, fs.ErrNotExist) {
		again, err := b.find(ctx, id)
		if err != nil {
			return nil, err
		}
		if again.file == p.file {
			return nil, blob.Corrupt(id, "its object file is missing")
		}
		return b.Open(ctx, id)
	}
	if err != nil {
		return nil, fmt.Errorf("open object file of %s: %w", id, err)
	}
	return f, nil
}

// Put implements blob.Store.
func (b *Blobs) Put(ctx context.Context, blobs ...blob.Blob) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	recs := make([]*record, 0, len(blobs))
	for _, one := range blobs {
		whole, err := blob.Whole(ctx, b, one)
		if err != nil {
			return err
		}
		if err := b.checkBase(ctx, whole, recs); err != nil {
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

// checkBase refuses a blob that could never be read. A base may come in the same
// call, before what leans on it.
func (b *Blobs) checkBase(ctx context.Context, one blob.Blob, before []*record) error {
	if one.Base.IsZero() || slices.ContainsFunc(before, func(r *record) bool { return r.id == one.Base }) {
		return nil
	}
	has, err := b.Has(ctx, one.Base)
	if err == nil && !has[0] {
		err = fmt.Errorf("store blob %s: its base: %w", one.ID, blob.NotFound(one.Base))
	}
	return err
}

// putObject writes a large blob's file now, in the caller's time, and queues its
// row.
func (b *Blobs) putObject(ctx context.Context, id, base blob.ID, r io.Reader, size int64) error {
	has, err := b.Has(ctx, id)
	if err != nil {
		return err
	}
	if has[0] { // a source that is not what it says is an error all the same
		if err := checkSize(r, size); err != nil {
			return err
		}
		return b.db.writer.put(ctx, []*record{{id: id, renewal: true}})
	}
	if b.db.opts.ReadOnly {
		return blob.ErrReadOnly
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

func checkSize(r io.Reader, size int64) error {
	n, err := io.Copy(io.Discard, io.LimitReader(r, size+1))
	if err == nil && n != size {
		err = fmt.Errorf("%w: source has %d bytes or more, want %d", blob.ErrMismatch, n, size)
	}
	return err
}

// Has implements blob.Store.
func (b *Blobs) Has(ctx context.Context, ids ...blob.ID) ([]bool, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	has := make([]bool, len(ids))
	for i, id := range ids {
		has[i] = b.db.writer.find(id) != nil
	}
	if !slices.Contains(has, false) {
		return has, nil
	}
	err := b.db.readers.with(ctx, func(c *conn) error {
		s, err := c.stmt(`SELECT 1 FROM blobs WHERE id = ?1`)
		if err != nil {
			return err
		}
		defer s.Reset()
		for i, id := range ids {
			if has[i] {
				continue
			}
			if err := s.BindBlob(1, id[:]); err != nil {
				return err
			}
			has[i] = s.Step()
			if err := s.Reset(); err != nil {
				return err
			}
		}
		return nil
	})
	return has, b.db.readError(ctx, "look for blobs", err)
}

// Flush implements blob.Store.
func (b *Blobs) Flush(ctx context.Context) error {
	if b.db.opts.ReadOnly {
		return ctx.Err()
	}
	return b.db.writer.do(&request{ctx: ctx})
}

// Open implements blob.Streamer.
func (b *Blobs) Open(ctx context.Context, id blob.ID) (io.ReadCloser, error) {
	p, err := b.find(ctx, id)
	if err != nil {
		return nil, err
	}
	if p.file != "" {
		return b.openObject(ctx, id, p)
	}
	return io.NopCloser(bytes.NewReader(p.data)), nil
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

// readError gives errors of reading their types.
func (db *DB) readError(ctx context.Context, doing string, err error) error {
	if err == nil || errors.Is(err, blob.ErrClosed) || ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return err
	}
	return sqlError(doing, err)
}
