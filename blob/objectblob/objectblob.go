// Package objectblob keeps blobs as objects of a bucket, one object for each blob.
//
//	bucket, err := s3blob.Open(ctx, "s3://my-bucket/copies", nil)
//	store := objectblob.New(bucket, "blobs/")
//	err = store.Put(ctx, b)
//
// The object of a blob is at prefix + first two hex digits of its id + "/" + id, and
// holds exactly the bytes that were put. Bytes are neither verified nor changed, and
// names need not be hashes, so layers above may compress and seal. A blob that is put
// again is written again: its object then has other bytes only if a sealing layer chose
// another nonce, and both versions can be read.
//
// Put and Has make one request for each blob, several at a time. Nothing is removed
// unless Remove is called; to list blobs, use the tools of the bucket.
package objectblob

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/stet-dev/stet/blob"
)

// parallel is how many requests of one call run at a time.
const parallel = 8

// Store is a blob.Store over a bucket.
type Store struct {
	bucket blob.Objects
	prefix string
}

var (
	_ blob.Store    = (*Store)(nil)
	_ blob.Streamer = (*Store)(nil)
)

// New returns a store whose objects have keys that begin with prefix.
func New(bucket blob.Objects, prefix string) *Store { return &Store{bucket: bucket, prefix: prefix} }

// Key returns the key of a blob's object.
func (s *Store) Key(id blob.ID) string {
	name := id.String()
	return s.prefix + name[:2] + "/" + name
}

// Get implements blob.Store.
func (s *Store) Get(ctx context.Context, id blob.ID) ([]byte, error) {
	r, err := s.Open(ctx, id)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(r)
	if err = errors.Join(err, r.Close()); err != nil {
		return nil, fmt.Errorf("get blob %s: %w", id, err)
	}
	return data, nil
}

// Open implements blob.Streamer.
func (s *Store) Open(ctx context.Context, id blob.ID) (io.ReadCloser, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r, err := s.bucket.OpenObject(ctx, s.Key(id), 0, -1)
	if errors.Is(err, blob.ErrNotFound) {
		return nil, blob.NotFound(id)
	}
	return r, err
}

// Put implements blob.Store. Blobs are durable when it returns. A blob is stored after
// the blobs of the same call that it leans on or extends.
func (s *Store) Put(ctx context.Context, blobs ...blob.Blob) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for len(blobs) > 0 {
		n := 0
		for n < len(blobs) && (n == 0 || blobs[n].Base.IsZero() && blobs[n].Keep == 0) {
			n++
		}
		if err := each(n, func(i int) error { return s.put(ctx, blobs[i]) }); err != nil {
			return err
		}
		blobs = blobs[n:]
	}
	return nil
}

func (s *Store) put(ctx context.Context, b blob.Blob) error {
	whole, err := blob.Whole(ctx, s, b)
	if err != nil {
		return err
	}
	if !b.Base.IsZero() {
		has, err := s.has(ctx, b.Base)
		if err != nil {
			return err
		}
		if !has {
			return fmt.Errorf("put blob %s: base: %w", b.ID, blob.NotFound(b.Base))
		}
	}
	return s.PutFrom(ctx, b.ID, bytes.NewReader(whole.Data), int64(len(whole.Data)))
}

// PutFrom implements blob.Streamer.
func (s *Store) PutFrom(ctx context.Context, id blob.ID, r io.Reader, size int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.bucket.PutObject(ctx, s.Key(id), r, size); err != nil {
		return fmt.Errorf("put blob %s: %w", id, err)
	}
	return nil
}

// Has implements blob.Store.
func (s *Store) Has(ctx context.Context, ids ...blob.ID) ([]bool, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	has := make([]bool, len(ids))
	err := each(len(ids), func(i int) (err error) {
		has[i], err = s.has(ctx, ids[i])
		return err
	})
	if err != nil {
		return nil, err
	}
	return has, nil
}

func (s *Store) has(ctx context.Context, id blob.ID) (bool, error) {
	r, err := s.bucket.OpenObject(ctx, s.Key(id), 0, 0)
	switch {
	case errors.Is(err, blob.ErrNotFound):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("look for blob %s: %w", id, err)
	}
	return true, r.Close()
}

// Remove removes the objects of blobs. Missing ones are not an error.
func (s *Store) Remove(ctx context.Context, ids ...blob.ID) error {
	keys := make([]string, len(ids))
	for i, id := range ids {
		keys[i] = s.Key(id)
	}
	if err := s.bucket.RemoveObjects(ctx, keys...); err != nil {
		return fmt.Errorf("remove %d blobs: %w", len(ids), err)
	}
	return nil
}

// Flush implements blob.Store. Put returns only when the bucket has the bytes.
func (s *Store) Flush(ctx context.Context) error { return ctx.Err() }

// each calls fn for 0 to n-1, several at a time, and returns the first error. After an
// error it starts no more calls.
func each(n int, fn func(i int) error) error {
	var (
		wait  sync.WaitGroup
		mu    sync.Mutex // guards next and first
		next  int
		first error
	)
	take := func() (int, bool) {
		mu.Lock()
		defer mu.Unlock()
		next++
		return next - 1, next <= n && first == nil
	}
	for range min(parallel, n) {
		wait.Go(func() {
			for i, ok := take(); ok; i, ok = take() {
				if err := fn(i); err != nil {
					mu.Lock()
					if first == nil {
						first = err
					}
					mu.Unlock()
				}
			}
		})
	}
	wait.Wait()
	return first
}
