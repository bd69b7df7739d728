// Package unsaved overlays a store with blobs that are never written to it. Code that
// only compares, for example a directory with a checkpoint, puts blobs as usual, reads
// them back, and leaves nothing behind.
//
//	look := unsaved.New(store, nil)
//	defer look.Close()
//	err := look.Put(ctx, b)            // into a file without a name
//	data, err := look.Get(ctx, b.ID)   // from there, or from the store
//
// The blobs are in an unlinked temporary file, which disappears with the process at
// the latest. They are neither durable nor visible to others.
package unsaved

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/stet-dev/stet/blob"
)

// Options configure a store; nil gives the defaults.
type Options struct {
	// MaxBytes limits what may be put, 4 GiB by default. Blobs beyond it are dropped,
	// and reading them fails with blob.ErrTooLarge.
	MaxBytes int64
}

// Store is a store with blobs on top. It implements blob.Store.
type Store struct {
	under blob.Store
	max   int64

	mu    sync.Mutex // guards the rest
	file  *os.File   // nil before the first Put
	size  int64
	kept  map[blob.ID]extent
	ended bool
}

// extent is a place in the file; a negative one means dropped.
type extent struct{ at, length int64 }

// New returns a store over another one. The caller must close it.
func New(under blob.Store, opts *Options) *Store {
	s := &Store{under: under, max: 4 << 30, kept: make(map[blob.ID]extent)}
	if opts != nil && opts.MaxBytes > 0 {
		s.max = opts.MaxBytes
	}
	return s
}

// Close drops all blobs that were put.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	s.kept = nil
	if s.file == nil {
		return nil
	}
	return errors.Join(s.file.Close(), remove(s.file.Name()))
}

// remove removes a file that may already be gone.
func remove(name string) error {
	if err := os.Remove(name); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// Get implements blob.Store.
func (s *Store) Get(ctx context.Context, id blob.ID) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return s.get(ctx, s.under, id)
}

// get reads a blob that was put, or with a reader of the store below.
func (s *Store) get(ctx context.Context, under blob.Reader, id blob.ID) ([]byte, error) {
	e, ok, err := s.find(id)
	switch {
	case err != nil:
		return nil, err
	case !ok:
		return under.Get(ctx, id)
	case e.at < 0:
		data, err := under.Get(ctx, id)
		if errors.Is(err, blob.ErrNotFound) {
			err = fmt.Errorf("%w: %s: more than %d new bytes", blob.ErrTooLarge, id, s.max)
		}
		return data, err
	}
	if err := blob.Reserve(ctx, e.length); err != nil {
		return nil, err
	}
	data := make([]byte, e.length)
	if _, err := s.file.ReadAt(data, e.at); err != nil {
		return nil, fmt.Errorf("read %s: %w", id, err)
	}
	return data, nil
}

// ReadMany implements blob.ManyReader.
func (s *Store) ReadMany(ctx context.Context, fn func(blob.Reader) error) error {
	return blob.ReadMany(ctx, s.under, func(under blob.Reader) error { return fn(manyReader{s, under}) })
}

// manyReader looks among the blobs that were put before it calls a reader of the store
// below.
type manyReader struct {
	s     *Store
	under blob.Reader
}

func (r manyReader) Get(ctx context.Context, id blob.ID) ([]byte, error) {
	return r.s.get(ctx, r.under, id)
}

func (r manyReader) Has(ctx context.Context, ids ...blob.ID) ([]bool, error) {
	return r.s.has(ctx, r.under, ids)
}

func (s *Store) find(id blob.ID) (extent, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return extent{}, false, blob.ErrClosed
	}
	e, ok := s.kept[id]
	return e, ok, nil
}

// Put implements blob.Store. Nothing reaches the store below.
func (s *Store) Put(ctx context.Context, blobs ...blob.Blob) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, b := range blobs {
		whole, err := blob.Whole(ctx, s, b)
		if err != nil {
			return err
		}
		if err := s.add(whole); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) add(b blob.Blob) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return blob.ErrClosed
	}
	if e, ok := s.kept[b.ID]; ok && e.at >= 0 {
		return nil
	}
	length := int64(len(b.Data))
	if s.size+length > s.max {
		s.kept[b.ID] = extent{at: -1}
		return nil
	}
	if s.file == nil {
		f, err := os.CreateTemp("", "stet-look-*")
		if err != nil {
			return fmt.Errorf("create temporary file: %w", err)
		}
		_ = os.Remove(f.Name()) // if that fails, Close does it
		s.file = f
	}
	if _, err := s.file.WriteAt(b.Data, s.size); err != nil {
		return fmt.Errorf("create temporary file: %w", err)
	}
	s.kept[b.ID] = extent{s.size, length}
	s.size += length
	return nil
}

// Has implements blob.Store.
func (s *Store) Has(ctx context.Context, ids ...blob.ID) ([]bool, error) {
	return s.has(ctx, s.under, ids)
}

func (s *Store) has(ctx context.Context, under blob.Reader, ids []blob.ID) ([]bool, error) {
	has, err := under.Has(ctx, ids...)
	if err != nil {
		return nil, err
	}
	for i, id := range ids {
		_, ok, err := s.find(id)
		if err != nil {
			return nil, err
		}
		has[i] = has[i] || ok
	}
	return has, nil
}

// Flush implements blob.Store. There is nothing to make durable.
func (s *Store) Flush(ctx context.Context) error { return ctx.Err() }

// Open implements blob.Streamer.
func (s *Store) Open(ctx context.Context, id blob.ID) (io.ReadCloser, error) {
	e, ok, err := s.find(id)
	if err != nil {
		return nil, err
	}
	if !ok {
		return blob.Open(ctx, s.under, id)
	}
	if e.at >= 0 && ctx.Err() == nil {
		return io.NopCloser(io.NewSectionReader(s.file, e.at, e.length)), nil
	}
	data, err := s.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	return io.NopCloser(bytes.NewReader(data)), nil
}

// PutFrom implements blob.Streamer. It holds the content in memory; callers put large
// files in parts.
func (s *Store) PutFrom(ctx context.Context, id blob.ID, r io.Reader, size int64) error {
	data, err := blob.ReadExactly(r, size)
	if err != nil {
		return err
	}
	return s.Put(ctx, blob.Blob{ID: id, Data: data})
}
