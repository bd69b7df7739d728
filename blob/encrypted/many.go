package encrypted

import (
	"context"
	"errors"

	"github.com/stet-dev/stet/blob"
)

var _ blob.ManyReader = (*Store)(nil)

// ReadMany implements blob.ManyReader. As long as a blob that is not found raises
// the question whether the keyring is the right one, and where seed form is
// allowed, each read goes its own way: the answer takes calls on the store below.
func (s *Store) ReadMany(ctx context.Context, fn func(blob.Reader) error) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	if s.ring == nil || s.opts.AllowSeedForm || !s.proven.Load() {
		return fn(s)
	}
	return blob.ReadMany(ctx, s.inner, func(below blob.Reader) error { return fn(sealedReader{s, below}) })
}

// sealedReader opens what a reader of the store below returns.
type sealedReader struct {
	s     *Store
	below blob.Reader
}

func (r sealedReader) Get(ctx context.Context, id blob.ID) ([]byte, error) {
	data, err := r.s.getSealed(ctx, r.below, id)
	if errors.Is(err, blob.ErrNotFound) {
		return nil, blob.NotFound(id)
	}
	return data, err
}

func (r sealedReader) Has(ctx context.Context, ids ...blob.ID) ([]bool, error) {
	return r.s.hasSealed(ctx, r.below, ids)
}
