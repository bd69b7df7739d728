// Package memkv keeps rows in memory. It is the simplest store that fulfils the
// contract of kv.Store. The suites compare other drivers with it, and tests use it.
//
// Nothing outlives the process. A scan is a snapshot taken at its start, which is
// more than the contract requires.
//
//	blobs := memblob.New()
//	rows := memkv.New(blobs)
//	err := rows.Commit(ctx, &kv.Batch{Set: []kv.Set{{Key: "greeting", Value: []byte("hello")}}})
//	row, err := rows.Get(ctx, "greeting")
package memkv

import (
	"bytes"
	"context"
	"iter"
	"slices"
	"sync"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/kv"
)

// Refs is the store of the blobs that rows refer to. memblob implements it.
type Refs interface {
	// Refer marks blobs as referenced in the current generation, so that a running
	// collector keeps them, and returns the absent ones.
	Refer(ids ...blob.ID) (missing []blob.ID)
}

// Store is a kv.Store in memory.
type Store struct {
	blobs Refs

	mu       sync.Mutex
	rows     map[string]row        // guarded by mu
	keys     []string              // guarded by mu; the keys of rows, sorted
	version  uint64                // guarded by mu; counts commits
	watchers map[*watcher]struct{} // guarded by mu
}

// A commit replaces a row and never changes it in place, so a scan's snapshot may
// share its value.
type row struct {
	value   []byte
	version uint64
}

type watcher struct {
	rng  kv.Range
	wake chan struct{}
}

var _ kv.Store = (*Store)(nil)

// New returns an empty store whose commits check their Refs against blobs. With
// nil they are not checked.
func New(blobs Refs) *Store {
	return &Store{blobs: blobs, rows: map[string]row{}, watchers: map[*watcher]struct{}{}}
}

// Get returns a row.
func (s *Store) Get(ctx context.Context, key string) (kv.Row, error) {
	if err := ctx.Err(); err != nil {
		return kv.Row{}, err
	}
	if err := kv.CheckKey(key); err != nil {
		return kv.Row{}, err
	}
	s.mu.Lock()
	r, ok := s.rows[key]
	s.mu.Unlock()
	if !ok {
		return kv.Row{}, kv.NotFound(key)
	}
	return kv.Row{Key: key, Value: bytes.Clone(r.value), Version: r.version}, nil
}

// Scan gives the rows of a range as they are when the iteration starts.
func (s *Store) Scan(ctx context.Context, r kv.Range, opts kv.ScanOptions) iter.Seq2[kv.Row, error] {
	return func(yield func(kv.Row, error) bool) {
		for _, found := range s.snapshot(r, opts) {
			if ctx.Err() != nil {
				break
			}
			found.Value = bytes.Clone(found.Value)
			if !yield(found, nil) {
				return
			}
		}
		if err := ctx.Err(); err != nil {
			yield(kv.Row{}, err)
		}
	}
}

// ScanBeside implements kv.Store.
func (s *Store) ScanBeside(ctx context.Context, r kv.Range, opts kv.ScanOptions, beside ...kv.Beside) ([]kv.Found, error) {
	return kv.EachBeside(ctx, s, r, opts, beside...)
}

// snapshot collects the rows of a scan; their values still belong to the store.
func (s *Store) snapshot(r kv.Range, opts kv.ScanOptions) []kv.Row {
	s.mu.Lock()
	defer s.mu.Unlock()
	lo, hi := s.spanLocked(r)
	n := hi - lo
	if opts.Limit > 0 {
		n = min(n, opts.Limit)
	}
	rows := make([]kv.Row, n)
	for i := range rows {
		key := s.keys[lo+i]
		if opts.Reverse {
			key = s.keys[hi-1-i]
		}
		rows[i] = kv.Row{Key: key, Version: s.rows[key].version}
		if !opts.KeysOnly {
			rows[i].Value = s.rows[key].value
		}
	}
	return rows
}

// spanLocked returns the positions in keys that a range covers.
func (s *Store) spanLocked(r kv.Range) (lo, hi int) {
	if r.Empty() {
		return 0, 0
	}
	lo, _ = slices.BinarySearch(s.keys, r.Start)
	if r.End == "" {
		return lo, len(s.keys)
	}
	hi, _ = slices.BinarySearch(s.keys, r.End)
	return lo, hi
}

// Watch returns a channel that gets a value after each commit that changed rows in
// the range; unread values are merged. It is closed when ctx is done.
func (s *Store) Watch(ctx context.Context, r kv.Range) <-chan struct{} {
	w := &watcher{rng: r, wake: make(chan struct{}, 1)}
	s.mu.Lock()
	s.watchers[w] = struct{}{}
	s.mu.Unlock()
	context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watchers, w)
		close(w.wake)
	})
	return w.wake
}

// wakeLocked sends hints about changed keys. It never waits for a watcher.
func (s *Store) wakeLocked(changed []string) {
	for w := range s.watchers {
		if !slices.ContainsFunc(changed, w.rng.Contains) {
			continue
		}
		select {
		case w.wake <- struct{}{}:
		default: // a hint is waiting already
		}
	}
}
