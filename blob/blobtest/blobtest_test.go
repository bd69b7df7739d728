package blobtest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/blobtest"
	"github.com/stet-dev/stet/blob/memblob"
)

// broken is a store with one method replaced by a wrong one.
type broken struct {
	*memblob.Store
	get   func(context.Context, blob.ID) ([]byte, error)
	put   func(context.Context, ...blob.Blob) error
	has   func(context.Context, ...blob.ID) ([]bool, error)
	flush func(context.Context) error
	from  func(context.Context, blob.ID, io.Reader, int64) error
	list  func(context.Context, blob.ID, func(blob.Info) error) error
	sweep func(context.Context, uint64, blob.SweepOptions) (blob.SweepResult, error)
}

func (b *broken) Get(ctx context.Context, id blob.ID) ([]byte, error) {
	if b.get != nil {
		return b.get(ctx, id)
	}
	return b.Store.Get(ctx, id)
}

func (b *broken) Put(ctx context.Context, blobs ...blob.Blob) error {
	if b.put != nil {
		return b.put(ctx, blobs...)
	}
	return b.Store.Put(ctx, blobs...)
}

func (b *broken) Has(ctx context.Context, ids ...blob.ID) ([]bool, error) {
	if b.has != nil {
		return b.has(ctx, ids...)
	}
	return b.Store.Has(ctx, ids...)
}

func (b *broken) Flush(ctx context.Context) error {
	if b.flush != nil {
		return b.flush(ctx)
	}
	return b.Store.Flush(ctx)
}

func (b *broken) PutFrom(ctx context.Context, id blob.ID, r io.Reader, size int64) error {
	if b.from != nil {
		return b.from(ctx, id, r, size)
	}
	return b.Store.PutFrom(ctx, id, r, size)
}

func (b *broken) List(ctx context.Context, after blob.ID, fn func(blob.Info) error) error {
	if b.list != nil {
		return b.list(ctx, after, fn)
	}
	return b.Store.List(ctx, after, fn)
}

func (b *broken) Sweep(ctx context.Context, generation uint64, opts blob.SweepOptions) (blob.SweepResult, error) {
	if b.sweep != nil {
		return b.sweep(ctx, generation, opts)
	}
	return b.Store.Sweep(ctx, generation, opts)
}

// TestCasesFindBrokenStores shows of each case that it can fail: it must refuse
// the stores that break its promise.
func TestCasesFindBrokenStores(t *testing.T) {
	for name, tt := range brokenStores() {
		t.Run(name, func(t *testing.T) {
			cases := map[string]blobtest.Case{}
			for _, c := range blobtest.Cases() {
				cases[c.Name] = c
			}
			for _, want := range tt.cases {
				if c, ok := cases[want]; !ok {
					t.Errorf("there is no case %s", want)
				} else if c.Func(t.Context(), tt.open()) == nil {
					t.Errorf("case %s passed on a store that breaks it", want)
				}
			}
		})
	}
}

type brokenStore struct {
	open  func() blob.Store
	cases []string
}

func brokenStores() map[string]brokenStore {
	stores := brokenWriters()
	for name, s := range brokenReaders() {
		stores[name] = s
	}
	for name, s := range brokenCollectors() {
		stores[name] = s
	}
	return stores
}

func breaking(change func(*broken)) func() blob.Store {
	return func() blob.Store {
		b := &broken{Store: memblob.New()}
		change(b)
		return b
	}
}

func brokenWriters() map[string]brokenStore {
	return map[string]brokenStore{
		"drops writes": {breaking(func(b *broken) {
			b.put = func(ctx context.Context, _ ...blob.Blob) error { return ctx.Err() }
			b.from = func(ctx context.Context, _ blob.ID, _ io.Reader, _ int64) error { return ctx.Err() }
		}), []string{"put-then-get", "put-many", "empty-blob", "odd-sizes", "a-list-grows-300-times", "local-only-is-readable",
			"put-again-changes-nothing", "concurrent-puts-of-one-blob", "concurrent-readers", "compressible-content",
			"resumed-list", "similar-blob-is-a-hint", "list-in-order", "swept-blob-can-be-put-again", "flush"}},
		"stores the first blob only": {breaking(func(b *broken) {
			b.put = func(ctx context.Context, blobs ...blob.Blob) error {
				return b.Store.Put(ctx, blobs[:min(1, len(blobs))]...)
			}
		}), []string{"put-many", "duplicates-in-one-put", "two-extensions-of-one-blob"}},
		"refuses nothing to put": {breaking(func(b *broken) {
			b.put = func(ctx context.Context, blobs ...blob.Blob) error {
				if len(blobs) == 0 {
					return errors.New("nothing to put")
				}
				return b.Store.Put(ctx, blobs...)
			}
		}), []string{"put-nothing"}},
		"refuses to store again": {breaking(func(b *broken) {
			b.put = func(ctx context.Context, blobs ...blob.Blob) error {
				for i := range blobs {
					if has, err := b.Store.Has(ctx, blobs[i].ID); err != nil || has[0] {
						return errors.Join(err, errors.New("exists"))
					}
				}
				return b.Store.Put(ctx, blobs...)
			}
		}), []string{"put-again-changes-nothing", "extension-put-again", "stream-in-and-out"}},
		"ignores contexts": {func() blob.Store { return forgetful{memblob.New()} },
			[]string{"done-context-does-nothing"}},
		"ignores extensions": {breaking(func(b *broken) {
			b.put = func(ctx context.Context, blobs ...blob.Blob) error {
				blobs = append([]blob.Blob(nil), blobs...)
				for i := range blobs {
					blobs[i].Keep = 0
				}
				return b.Store.Put(ctx, blobs...)
			}
		}), []string{"a-list-grows-300-times", "resumed-list", "extension-may-cut", "extension-put-again", "two-extensions-of-one-blob",
			"extension-of-absent-blob", "extension-that-keeps-too-much", "concurrent-mixed-use"}},
		"insists on hints": {breaking(func(b *broken) {
			b.put = func(ctx context.Context, blobs ...blob.Blob) error {
				for i := range blobs {
					if _, err := b.Store.Get(ctx, blobs[i].Like); !blobs[i].Like.IsZero() && err != nil {
						return err
					}
				}
				return b.Store.Put(ctx, blobs...)
			}
		}), []string{"hint-at-absent-blob-is-harmless"}},
		"changes its arguments": {breaking(func(b *broken) {
			b.put = func(ctx context.Context, blobs ...blob.Blob) error {
				err := b.Store.Put(ctx, blobs...)
				for i := range blobs {
					blobs[i].Like = blob.ID{}
				}
				return err
			}
		}), []string{"put-leaves-its-arguments-alone"}},
		"believes the announced size": {breaking(func(b *broken) {
			b.from = func(ctx context.Context, id blob.ID, r io.Reader, size int64) error {
				data, err := io.ReadAll(io.LimitReader(r, size))
				if err != nil {
					return err
				}
				return b.Store.Put(ctx, blob.Blob{ID: id, Data: data})
			}
		}), []string{"short-source-stores-nothing", "long-source-stores-nothing"}},
		"keeps what a failing source gave": {breaking(func(b *broken) {
			b.from = func(ctx context.Context, id blob.ID, r io.Reader, _ int64) error {
				data, err := io.ReadAll(r)
				return errors.Join(err, b.Store.Put(ctx, blob.Blob{ID: id, Data: data}))
			}
		}), []string{"failing-source-stores-nothing", "short-source-stores-nothing", "wrong-id-is-refused"}},
		"reads its source once": {breaking(func(b *broken) {
			b.from = func(ctx context.Context, id blob.ID, r io.Reader, size int64) error {
				buf := make([]byte, size)
				n, err := r.Read(buf)
				if err != nil && err != io.EOF {
					return err
				}
				return b.Store.Put(ctx, blob.Blob{ID: id, Data: buf[:n]})
			}
		}), []string{"stream-in-small-pieces"}},
		"leaves large blobs in their generation": {breaking(func(b *broken) {
			b.from = func(ctx context.Context, id blob.ID, r io.Reader, size int64) error {
				if has, err := b.Store.Has(ctx, id); err == nil && has[0] && size > 128<<10 {
					_, err := io.Copy(io.Discard, r)
					return err
				}
				return b.Store.PutFrom(ctx, id, r, size)
			}
		}), []string{"sweep-keeps-the-new-generation"}},
		"believes in bases that it has seen": {breaking(func(b *broken) {
			seen := map[blob.ID]bool{}
			var mu sync.Mutex
			b.put = func(ctx context.Context, blobs ...blob.Blob) error {
				mu.Lock()
				defer mu.Unlock()
				blobs = append([]blob.Blob(nil), blobs...)
				for i := range blobs {
					if seen[blobs[i].Base] {
						blobs[i].Base = blob.ID{}
					}
					seen[blobs[i].Base] = true
				}
				return b.Store.Put(ctx, blobs...)
			}
		}), []string{"blob-whose-base-was-swept-is-refused"}},
		"keeps the caller's memory": {func() blob.Store { return &sharing{blobs: map[blob.ID][]byte{}} },
			[]string{"caller-may-reuse-what-it-put", "caller-owns-what-it-got"}},
	}
}

func brokenReaders() map[string]brokenStore {
	return map[string]brokenStore{
		"absent is empty": {breaking(func(b *broken) {
			b.get = func(ctx context.Context, id blob.ID) ([]byte, error) {
				data, err := b.Store.Get(ctx, id)
				if errors.Is(err, blob.ErrNotFound) {
					return nil, nil
				}
				return data, err
			}
		}), []string{"absent-is-not-found"}},
		"loses zero bytes": {breaking(func(b *broken) {
			b.get = func(ctx context.Context, id blob.ID) ([]byte, error) {
				data, err := b.Store.Get(ctx, id)
				return bytes.TrimRight(data, "\x00"), err
			}
		}), []string{"one-zero-byte"}},
		"truncates at 64 KiB": {breaking(func(b *broken) {
			b.get = func(ctx context.Context, id blob.ID) ([]byte, error) {
				data, err := b.Store.Get(ctx, id)
				return data[:min(len(data), 64<<10)], err
			}
		}), []string{"odd-sizes", "stream-in-and-out", "compressible-content"}},
		"gives a part of a large array": {breaking(func(b *broken) {
			b.get = func(ctx context.Context, id blob.ID) ([]byte, error) {
				data, err := b.Store.Get(ctx, id)
				return append(make([]byte, 0, 200<<10), data...), err
			}
		}), []string{"short-blob-holds-no-large-array"}},
		"has answers sorted": {breaking(func(b *broken) {
			b.has = func(ctx context.Context, ids ...blob.ID) ([]bool, error) {
				has, err := b.Store.Has(ctx, ids...)
				for i := 1; i < len(has); i++ {
					has[i] = has[i] || has[i-1]
				}
				return has, err
			}
		}), []string{"has-answers-in-order"}},
		"flush fails": {breaking(func(b *broken) {
			b.flush = func(context.Context) error { return errors.New("cannot") }
		}), []string{"flush"}},
		"lists backwards": {breaking(func(b *broken) {
			b.list = func(ctx context.Context, after blob.ID, fn func(blob.Info) error) error {
				var infos []blob.Info
				err := b.Store.List(ctx, after, func(i blob.Info) error { infos = append(infos, i); return nil })
				for i := len(infos) - 1; i >= 0 && err == nil; i-- {
					err = fn(infos[i])
				}
				return err
			}
		}), []string{"list-in-order"}},
		"lists from the start, never stops": {breaking(func(b *broken) {
			b.list = func(_ context.Context, _ blob.ID, fn func(blob.Info) error) error {
				return b.Store.List(context.Background(), blob.ID{}, func(i blob.Info) error { _ = fn(i); return nil })
			}
		}), []string{"list-after", "list-stops", "list-with-done-context"}},
	}
}

func brokenCollectors() map[string]brokenStore {
	sweeping := func(change func(*uint64, *blob.SweepOptions)) func() blob.Store {
		return breaking(func(b *broken) {
			b.sweep = func(ctx context.Context, g uint64, opts blob.SweepOptions) (blob.SweepResult, error) {
				change(&g, &opts)
				return b.Store.Sweep(ctx, g, opts)
			}
		})
	}
	return map[string]brokenStore{
		"sweeps nothing": {sweeping(func(_ *uint64, o *blob.SweepOptions) { o.DryRun = true }),
			[]string{"sweep-removes-dead-blobs", "sweep-keeps-the-new-generation", "sweep-keeps-bases", "sweep-dry-run", "swept-blob-can-be-put-again"}},
		"sweeps on a dry run": {sweeping(func(_ *uint64, o *blob.SweepOptions) { o.DryRun = false }),
			[]string{"sweep-dry-run"}},
		"ignores grace": {sweeping(func(_ *uint64, o *blob.SweepOptions) { o.GraceSeconds = 0 }),
			[]string{"sweep-respects-grace"}},
		"ignores contexts when sweeping": {breaking(func(b *broken) {
			b.sweep = func(_ context.Context, g uint64, o blob.SweepOptions) (blob.SweepResult, error) {
				return b.Store.Sweep(context.Background(), g, o)
			}
		}), []string{"sweep-with-done-context"}},
		"ignores generations": {breaking(func(b *broken) {
			b.sweep = func(ctx context.Context, _ uint64, o blob.SweepOptions) (blob.SweepResult, error) {
				latest, err := b.Begin(ctx)
				if err != nil {
					return blob.SweepResult{}, err
				}
				return b.Store.Sweep(ctx, latest, o)
			}
		}), []string{"sweep-keeps-the-new-generation", "generations-grow"}},
		"forgets bases": {breaking(func(b *broken) {
			b.put = func(ctx context.Context, blobs ...blob.Blob) error {
				blobs = append([]blob.Blob(nil), blobs...)
				for i := range blobs {
					blobs[i].Base = blob.ID{}
				}
				return b.Store.Put(ctx, blobs...)
			}
		}), []string{"sweep-keeps-bases", "blob-without-its-base-is-refused"}},
	}
}

// forgetful calls the inner store with contexts that never end.
type forgetful struct{ inner blob.Store }

func (f forgetful) Get(_ context.Context, id blob.ID) ([]byte, error) {
	return f.inner.Get(context.Background(), id)
}
func (f forgetful) Put(_ context.Context, blobs ...blob.Blob) error {
	return f.inner.Put(context.Background(), blobs...)
}
func (f forgetful) Has(_ context.Context, ids ...blob.ID) ([]bool, error) {
	return f.inner.Has(context.Background(), ids...)
}
func (f forgetful) Flush(context.Context) error { return nil }

// sharing keeps the slices that it is given and gives them away again.
type sharing struct {
	mu    sync.Mutex // guards blobs
	blobs map[blob.ID][]byte
}

func (s *sharing) Get(_ context.Context, id blob.ID) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	data, ok := s.blobs[id]
	if !ok {
		return nil, blob.NotFound(id)
	}
	return data, nil
}

func (s *sharing) Put(_ context.Context, blobs ...blob.Blob) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range blobs {
		if b.Keep > 0 {
			return fmt.Errorf("extension: %w", errors.ErrUnsupported)
		}
		s.blobs[b.ID] = b.Data
	}
	return nil
}

func (s *sharing) Has(_ context.Context, ids ...blob.ID) ([]bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	has := make([]bool, len(ids))
	for i, id := range ids {
		_, has[i] = s.blobs[id]
	}
	return has, nil
}

func (s *sharing) Flush(context.Context) error { return nil }
