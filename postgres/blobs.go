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

// Blobs is the blob.Store of a Tenant. It also implements blob.Streamer,
// blob.Lister and blob.Sweeper.
type Blobs struct{ t *Tenant }

var (
	_ blob.Store    = (*Blobs)(nil)
	_ blob.Streamer = (*Blobs)(nil)
	_ blob.Lister   = (*Blobs)(nil)
	_ blob.Sweeper  = (*Blobs)(nil)
)

// Blobs returns the store of blobs.
func (t *Tenant) Blobs() *Blobs { return &Blobs{t: t} }

// place is where a blob's content is: in memory, or in the bucket.
type place struct {
	data   []byte
	object string
	size   int64
	base   blob.ID // known for durable blobs
}

// Get implements blob.Store.
func (b *Blobs) Get(ctx context.Context, id blob.ID) ([]byte, error) {
	p, err := b.load(ctx, id, b.find)
	return p.data, err
}

// readError distinguishes a failing bucket from an object that is too short.
func readError(ctx context.Context, id blob.ID, n, want int64, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return blob.Corrupt(id, "its object has %d bytes, want %d", n, want)
	}
	return fmt.Errorf("read the object of %s: %w", id, err)
}

// find looks a blob up, first among the pending ones.
func (b *Blobs) find(ctx context.Context, id blob.ID) (place, error) {
	if err := ctx.Err(); err != nil {
		return place{}, err
	}
	if r := b.t.find(id); r != nil {
		return place{data: cloneContent(r.data), object: r.object, size: r.size}, nil
	}
	p, err := b.row(ctx, id)
	if err == nil {
		b.t.remember(id)
	}
	return p, err
}

// row looks up where a durable blob is and which base it leans on.
func (b *Blobs) row(ctx context.Context, id blob.ID) (p place, err error) {
	q := &question{id: id}
	if id.IsZero() {
		return place{}, blob.NotFound(id)
	}
	if err := b.t.ask(ctx, q); err != nil {
		return place{}, b.t.db.wrap(ctx, "read blob "+id.String(), err)
	}
	if q.blob == nil {
		return place{}, blob.NotFound(id)
	}
	p.size, p.data = q.blob.size, q.blob.data
	copy(p.base[:], q.blob.base)
	if q.blob.object != nil {
		p.object = *q.blob.object
		return p, nil
	}
	if int64(len(p.data)) != p.size {
		return place{}, blob.Corrupt(id, "row has %d bytes, want %d", len(p.data), p.size)
	}
	return p, nil
}

func cloneContent(data []byte) []byte {
	return append(make([]byte, 0, len(data)), data...)
}

// Put implements blob.Store.
func (b *Blobs) Put(ctx context.Context, blobs ...blob.Blob) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, one := range blobs {
		whole, err := blob.Whole(ctx, b, one)
		if err != nil {
			return err
		}
		if err := b.checkBase(ctx, whole); err != nil {
			return err
		}
		size := int64(len(whole.Data))
		if b.large(size) {
			err = b.putObject(ctx, whole.ID, whole.Base, bytes.NewReader(whole.Data), size)
		} else {
			err = b.putSmall(ctx, &record{id: whole.ID, base: whole.Base, size: size, data: cloneContent(whole.Data)})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *Blobs) large(size int64) bool {
	return b.t.db.opts.Objects != nil && size >= int64(b.t.db.opts.LargeBytes)
}

func (b *Blobs) putSmall(ctx context.Context, r *record) error {
	if r.size > maxInDatabase {
		return fmt.Errorf("store blob %s: %w: %d bytes; without a bucket the limit is %d", r.id, blob.ErrTooLarge, r.size, maxInDatabase)
	}
	return b.t.put(ctx, r)
}

// checkBase rejects a blob that could never be read.
func (b *Blobs) checkBase(ctx context.Context, one blob.Blob) error {
	if one.Base.IsZero() || b.t.knows(one.Base) {
		return nil
	}
	has, err := b.Has(ctx, one.Base)
	if err == nil && has[0] {
		b.t.remember(one.Base)
	}
	if err == nil && !has[0] {
		err = fmt.Errorf("store blob %s: its base: %w", one.ID, blob.NotFound(one.Base))
	}
	return err
}

// Has implements blob.Store.
func (b *Blobs) Has(ctx context.Context, ids ...blob.ID) ([]bool, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	has := make([]bool, len(ids))
	var ask [][]byte
	for i, id := range ids {
		if has[i] = b.t.find(id) != nil; !has[i] {
			ask = append(ask, ids[i][:])
		}
	}
	if len(ask) == 0 {
		return has, nil
	}
	db := b.t.db
	var stored map[blob.ID]bool
	err := db.read(ctx, func() error {
		stored = make(map[blob.ID]bool, len(ask))
		rows, err := db.pool.Query(ctx, db.sql(sqlHasBlobs), b.t.name, ask)
		if err != nil {
			return err
		}
		var id []byte
		_, err = pgx.ForEachRow(rows, []any{&id}, func() error {
			stored[blob.ID(id)] = true
			return nil
		})
		return err
	})
	for i, id := range ids {
		has[i] = has[i] || stored[id]
	}
	return has, db.wrap(ctx, "look for blobs", err)
}

// Flush implements blob.Store.
func (b *Blobs) Flush(ctx context.Context) error {
	if err := b.t.do(&request{ctx: ctx}); err != nil {
		return err
	}
	return b.t.takeLost()
}

// Open implements blob.Streamer.
func (b *Blobs) Open(ctx context.Context, id blob.ID) (io.ReadCloser, error) {
	p, err := b.find(ctx, id)
	for err == nil && p.object != "" {
		var r io.ReadCloser
		if r, err = b.openObject(ctx, id, p); err == nil {
			return r, nil
		}
		p, err = b.moved(ctx, id, p, err, b.find)
	}
	if err != nil {
		return nil, err
	}
	return io.NopCloser(bytes.NewReader(p.data)), nil
}

// PutFrom implements blob.Streamer.
func (b *Blobs) PutFrom(ctx context.Context, id blob.ID, r io.Reader, size int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if b.large(size) {
		return b.putObject(ctx, id, blob.ID{}, r, size)
	}
	if size > maxInDatabase {
		return b.putSmall(ctx, &record{id: id, size: size}) // fails and says why
	}
	data, err := blob.ReadExactly(r, size)
	if err != nil {
		return fmt.Errorf("store blob %s: %w", id, err)
	}
	return b.putSmall(ctx, &record{id: id, size: size, data: slices.Clip(data)})
}

// read runs a query, and repeats it if the connection was broken: after a failover, all
// idle connections in the pool are. It waits for a connection if the server has none
// left.
func (db *DB) read(ctx context.Context, query func() error) error {
	deadline := time.Now().Add(db.opts.RetryFor)
	for {
		err := query()
		if err == nil || ctx.Err() != nil || errors.Is(err, pgx.ErrNoRows) || db.ctx.Err() != nil || !gone(err) || time.Now().After(deadline) {
			return err
		}
		if err := db.pause(50 * time.Millisecond); err != nil {
			return err
		}
	}
}

// gone reports whether the server or the connection to it failed, or there was none.
func gone(err error) bool {
	code := pgCode(err)
	return code == "" || code == codeTooMany || len(code) == 5 && code[:3] == "57P"
}
