// Package memblob keeps blobs in memory. It is the simplest store that fulfils the
// whole contract of [blob.Store]. The suites compare other stores with it; tests and
// short-lived programs use it directly.
//
//	store := blob.Checked(memblob.New())
//	b := blob.New([]byte("hello"))
//	err := store.Put(ctx, b)
//	data, err := store.Get(ctx, b.ID)
//
// It checks no ids (blob.Checked does). Its content is lost when the process ends, so
// Flush has nothing to do.
package memblob

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/stet-dev/stet/blob"
)

// Store is an in-memory blob.Store that can also stream, list, sweep, replace stored
// bytes and report arrivals.
type Store struct {
	mu         sync.RWMutex // guards what follows
	blobs      map[blob.ID]*entry
	generation uint64
	arrivals   uint64 // numbers given out
}

// entry is one blob. Its data never changes once stored, so readers may copy from it
// without the lock.
type entry struct {
	data       []byte
	base       blob.ID
	arrived    uint64    // number of the arrival
	generation uint64    // of the last Put or Refer
	touched    time.Time // when that was
}

var (
	_ blob.Store    = (*Store)(nil)
	_ blob.Streamer = (*Store)(nil)
	_ blob.Lister   = (*Store)(nil)
	_ blob.Sweeper  = (*Store)(nil)
)

// New returns an empty store.
func New() *Store {
	return &Store{blobs: make(map[blob.ID]*entry)}
}

// Get implements blob.Store.
func (s *Store) Get(ctx context.Context, id blob.ID) ([]byte, error) {
	data, err := s.lookup(ctx, id)
	if err != nil {
		return nil, err
	}
	return append(make([]byte, 0, len(data)), data...), nil
}

// lookup returns the store's own bytes; the caller must not pass them on.
func (s *Store) lookup(ctx context.Context, id blob.ID) ([]byte, error) {
	e, err := s.find(ctx, id)
	return e.data, err
}

// find returns a copy of an entry.
func (s *Store) find(ctx context.Context, id blob.ID) (entry, error) {
	if err := ctx.Err(); err != nil {
		return entry{}, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	e, ok := s.blobs[id]
	if !ok {
		return entry{}, blob.NotFound(id)
	}
	return *e, nil
}

func (e *entry) info(id blob.ID) blob.Info {
	return blob.Info{ID: id, Stored: int64(len(e.data)), Base: e.base}
}

// Put implements blob.Store. It stores all blobs or, with an error, none. A blob may
// extend or lean on an earlier one of the same call. A blob whose Base is absent
// fails with blob.ErrNotFound: it could never be read.
func (s *Store) Put(ctx context.Context, blobs ...blob.Blob) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	staged := make(map[blob.ID]*entry, len(blobs))
	for i := range blobs {
		if err := s.stageLocked(staged, &blobs[i]); err != nil {
			return err
		}
	}
	for i := range blobs { // arrivals are in the order of the call
		s.storeLocked(blobs[i].ID, staged[blobs[i].ID])
	}
	return nil
}

func (s *Store) stageLocked(staged map[blob.ID]*entry, b *blob.Blob) error {
	if b.Keep < 0 {
		return fmt.Errorf("%w: %s keeps %d bytes of %s", blob.ErrMismatch, b.ID, b.Keep, b.Like)
	}
	if s.stagedLocked(staged, b.ID) != nil {
		// Content under a name never changes; only the age of an existing blob does.
		staged[b.ID] = s.stagedLocked(staged, b.ID)
		return nil
	}
	if !b.Base.IsZero() && s.stagedLocked(staged, b.Base) == nil {
		return fmt.Errorf("store %s without its base: %w", b.ID, blob.NotFound(b.Base))
	}
	data, err := s.contentLocked(staged, b)
	if err != nil {
		return err
	}
	staged[b.ID] = &entry{data: data, base: b.Base}
	return nil
}

// contentLocked returns a copy of the whole content of b.
func (s *Store) contentLocked(staged map[blob.ID]*entry, b *blob.Blob) ([]byte, error) {
	var kept []byte
	if b.Keep > 0 {
		like := s.stagedLocked(staged, b.Like)
		if like == nil {
			return nil, fmt.Errorf("read what %s extends: %w", b.ID, blob.NotFound(b.Like))
		}
		if int64(len(like.data)) < b.Keep {
			return nil, fmt.Errorf("%w: %s keeps %d bytes of %s, which has %d",
				blob.ErrMismatch, b.ID, b.Keep, b.Like, len(like.data))
		}
		kept = like.data[:b.Keep]
	}
	data := make([]byte, 0, len(kept)+len(b.Data))
	return append(append(data, kept...), b.Data...), nil
}

func (s *Store) stagedLocked(staged map[blob.ID]*entry, id blob.ID) *entry {
	if e, ok := staged[id]; ok {
		return e
	}
	return s.blobs[id]
}

// storeLocked stores e under id and moves it to the current generation, even if it
// existed before.
func (s *Store) storeLocked(id blob.ID, e *entry) {
	e.generation, e.touched = s.generation, time.Now()
	if e.arrived == 0 {
		s.arrivals++
		e.arrived = s.arrivals
	}
	s.blobs[id] = e
}

// Has implements blob.Store.
func (s *Store) Has(ctx context.Context, ids ...blob.ID) ([]bool, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	has := make([]bool, len(ids))
	for i, id := range ids {
		_, has[i] = s.blobs[id]
	}
	return has, nil
}

// Flush implements blob.Store.
func (s *Store) Flush(ctx context.Context) error { return ctx.Err() }

// Open implements blob.Streamer.
func (s *Store) Open(ctx context.Context, id blob.ID) (io.ReadCloser, error) {
	data, err := s.lookup(ctx, id)
	if err != nil {
		return nil, err
	}
	// Not a bytes.Reader: its WriteTo would pass our own slice to the caller's
	// writer.
	return io.NopCloser(struct{ io.Reader }{bytes.NewReader(data)}), nil
}

// PutFrom implements blob.Streamer.
func (s *Store) PutFrom(ctx context.Context, id blob.ID, r io.Reader, size int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	data, err := blob.ReadExactly(r, size)
	if err != nil {
		return fmt.Errorf("read content of %s: %w", id, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.blobs[id]
	if e == nil {
		e = &entry{data: slices.Clip(data)}
	}
	s.storeLocked(id, e)
	return nil
}

// Len returns the number of blobs.
func (s *Store) Len() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.blobs)
}
