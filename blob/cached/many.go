package cached

import (
	"context"

	"github.com/stet-dev/stet/blob"
)

var _ blob.ManyReader = (*Store)(nil)

// ReadMany implements blob.ManyReader. Blobs that are not in memory are read with one
// reader of the inner store, in the caller's goroutine; such reads are not shared with
// others.
func (s *Store) ReadMany(ctx context.Context, fn func(blob.Reader) error) error {
	return blob.ReadMany(ctx, s.inner, func(below blob.Reader) error { return fn(manyReader{s, below}) })
}

type manyReader struct {
	s     *Store
	below blob.Reader
}

func (r manyReader) Get(ctx context.Context, id blob.ID) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s := r.s
	s.mu.Lock()
	data, ok := s.lru.Get(id)
	absent, puts := !ok && s.absent.has(id), s.puts
	s.mu.Unlock()
	switch {
	case ok:
		s.counters.count(ctx, hit)
		return clone(data), nil
	case absent:
		s.counters.count(ctx, negative)
		return nil, blob.NotFound(id)
	}
	s.counters.count(ctx, miss)
	data, err := r.below.Get(ctx, id)
	keep := s.worthKeeping(id, data, err)
	s.mu.Lock()
	s.noteLocked(id, puts, data, err, keep)
	s.mu.Unlock()
	if keep {
		data = clone(data)
	}
	return data, err
}

func (r manyReader) Has(ctx context.Context, ids ...blob.ID) ([]bool, error) {
	return r.below.Has(ctx, ids...)
}
