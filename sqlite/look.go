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

// Get implements blob.Store.
func (b *Blobs) Get(ctx context.Context, id blob.ID) ([]byte, error) {
	return b.look().Get(ctx, id)
}

// Has implements blob.Store.
func (b *Blobs) Has(ctx context.Context, ids ...blob.ID) (has []bool, err error) {
	if len(ids) == 1 {
		return b.look().Has(ctx, ids...)
	}
	err = b.ReadMany(ctx, func(r blob.Reader) error {
		has, err = r.Has(ctx, ids...)
		return err
	})
	return has, err
}

// Open implements blob.Streamer.
func (b *Blobs) Open(ctx context.Context, id blob.ID) (io.ReadCloser, error) {
	return b.look().open(ctx, id)
}

func (b *Blobs) look() look { return look{db: b.db} }

// ReadMany implements blob.ManyReader: the reads of fn share one connection and, while
// nothing is missing, one read transaction. Beginning and ending a transaction takes
// longer than reading a small blob.
func (b *Blobs) ReadMany(ctx context.Context, fn func(blob.Reader) error) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	v := &view{readers: b.db.readers}
	defer func() { err = errors.Join(err, b.db.readError(ctx, "end reading blobs", v.close())) }()
	return fn(look{db: b.db, view: v})
}

// view is a read transaction shared by several lookups. It takes a connection for the
// first lookup and begins the transaction with the second.
type view struct {
	readers *pool
	conn    *conn // nil before the first lookup
}

func (v *view) with(ctx context.Context, fn func(*conn) error) (err error) {
	if v.conn == nil {
		if v.conn, err = v.readers.take(ctx); err != nil {
			return err
		}
		return fn(v.conn)
	}
	if err := v.begin(); err != nil {
		return err
	}
	return fn(v.conn)
}

func (v *view) begin() error {
	if !v.conn.GetAutocommit() {
		return nil
	}
	return v.conn.exec(`BEGIN`)
}

// end lets the next lookup see newer commits. An error may have ended the transaction
// already.
func (v *view) end() error {
	if v.conn == nil || v.conn.GetAutocommit() {
		return nil
	}
	return v.conn.exec(`ROLLBACK`)
}

func (v *view) close() error {
	if v.conn == nil {
		return nil
	}
	err := v.end()
	if err == nil {
		err = v.readers.same(v.conn)
	}
	v.readers.give(v.conn)
	v.conn = nil
	return err
}

// look finds blobs, each in its own transaction or in that of a view.
type look struct {
	db   *DB
	view *view // or nil
}

func (l look) with(ctx context.Context, fn func(*conn) error) error {
	if l.view != nil {
		return l.view.with(ctx, fn)
	}
	return l.db.readers.with(ctx, fn)
}

// place is where a blob's content is: in memory, or in a file.
type place struct {
	data []byte
	file string
	size int64
	base blob.ID
}

func (l look) Get(ctx context.Context, id blob.ID) ([]byte, error) {
	p, err := l.find(ctx, id)
	if err != nil {
		return nil, err
	}
	p, err = l.load(ctx, id, p)
	return p.data, err
}

// load returns a place with its content; a different place if the blob has moved.
func (l look) load(ctx context.Context, id blob.ID, p place) (place, error) {
	f, p, err := l.openObject(ctx, id, p)
	if err != nil || f == nil {
		return p, err
	}
	defer f.Close()
	if err := blob.Reserve(ctx, p.size); err != nil {
		return place{}, err
	}
	p.data = make([]byte, p.size)
	if n, err := io.ReadFull(f, p.data); err != nil {
		return place{}, blob.Corrupt(id, "object file has %d bytes, want %d", n, p.size)
	}
	return p, nil
}

func (l look) open(ctx context.Context, id blob.ID) (io.ReadCloser, error) {
	p, err := l.find(ctx, id)
	if err != nil {
		return nil, err
	}
	f, p, err := l.openObject(ctx, id, p)
	if err != nil {
		return nil, err
	}
	if f == nil {
		return io.NopCloser(bytes.NewReader(p.data)), nil
	}
	return f, nil
}

// find looks a blob up. A view may be older than the blob.
func (l look) find(ctx context.Context, id blob.ID) (place, error) {
	p, err := l.findOnce(ctx, id)
	if l.view != nil && errors.Is(err, blob.ErrNotFound) {
		if err := l.view.end(); err != nil {
			return place{}, l.db.readError(ctx, "read blob "+id.String(), err)
		}
		return l.findOnce(ctx, id)
	}
	return p, err
}

// findOnce first looks among the blobs that are not written yet.
func (l look) findOnce(ctx context.Context, id blob.ID) (place, error) {
	if err := ctx.Err(); err != nil {
		return place{}, err
	}
	if r := l.db.writer.find(id); r != nil {
		return place{data: cloneContent(r.data), file: r.file, size: r.size, base: r.base}, nil
	}
	return l.findRow(ctx, id)
}

func (l look) findRow(ctx context.Context, id blob.ID) (place, error) {
	var p place
	found := false
	err := l.with(ctx, func(c *conn) error {
		s, err := c.stmt(`SELECT file, size, data, base FROM blobs WHERE id = ?1`)
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
			copy(p.base[:], s.ColumnRawBlob(3))
		}
		return s.Err()
	})
	if err != nil {
		return place{}, l.db.readError(ctx, "read blob "+id.String(), err)
	}
	if !found {
		return place{}, blob.NotFound(id)
	}
	if p.file == "" && int64(len(p.data)) != p.size {
		return place{}, blob.Corrupt(id, "row has %d bytes, want %d", len(p.data), p.size)
	}
	return p, nil
}

// openObject opens a blob's file, if it is in one. If a collector removed the file
// after the row was read, the row is gone too, and the blob counts as missing. If the
// blob was replaced, the place changes.
func (l look) openObject(ctx context.Context, id blob.ID, p place) (io.ReadCloser, place, error) {
	for p.file != "" {
		f, err := l.db.objects.open(id, p.file)
		if err == nil {
			return f, p, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, place{}, fmt.Errorf("open object file of %s: %w", id, err)
		}
		if l.view != nil {
			if err := l.view.end(); err != nil {
				return nil, place{}, l.db.readError(ctx, "read blob "+id.String(), err)
			}
		}
		again, err := l.find(ctx, id)
		if err != nil {
			return nil, place{}, err
		}
		if again.file == p.file {
			return nil, place{}, blob.Corrupt(id, "its object file is missing")
		}
		p = again
	}
	return nil, p, nil
}

func (l look) Has(ctx context.Context, ids ...blob.ID) ([]bool, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	has := make([]bool, len(ids))
	for i, id := range ids {
		has[i] = l.db.writer.find(id) != nil
	}
	if !slices.Contains(has, false) {
		return has, nil
	}
	if l.view != nil {
		if err := l.view.end(); err != nil {
			return nil, l.db.readError(ctx, "look for blobs", err)
		}
	}
	err := l.with(ctx, func(c *conn) error {
		if l.view != nil {
			if err := l.view.begin(); err != nil {
				return err
			}
			l.hasFresh(c, ids, has)
		}
		return hasRows(c, ids, has)
	})
	return has, l.db.readError(ctx, "look for blobs", err)
}

// hasFresh finds blobs of the generation current in the view's transaction without
// looking up each. A store without a generation can still be read.
func (l look) hasFresh(c *conn, ids []blob.ID, has []bool) {
	gen, err := generation(c)
	if err != nil {
		return
	}
	for i, id := range ids {
		has[i] = has[i] || l.db.writer.fresh.has(gen, id)
	}
}

// hasRows looks up the ids that are not found yet.
func hasRows(c *conn, ids []blob.ID, has []bool) error {
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
}

// readError converts errors of reading.
func (db *DB) readError(ctx context.Context, doing string, err error) error {
	if err == nil || errors.Is(err, blob.ErrClosed) || ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return err
	}
	return sqlError(doing, err)
}
