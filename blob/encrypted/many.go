package encrypted

import (
	"context"
	"errors"

	"github.com/stet-dev/stet/blob"
)

var _ blob.ManyReader = (*Store)(nil)

// ReadMany implements blob.ManyReader. Until the keyring is proved right, and if seed
// form is allowed, each read is a separate call: a missing blob then needs other
// calls on the store below.
func (s *Store) ReadMany(ctx context.Context, fn func(blob.Reader) error) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	if s.ring == nil || s.opts.AllowSeedForm || !s.proven.Load() {
		return fn(s)
	}
	return blob.ReadMany(ctx, s.inner, func(below blob.Reader) error { return fn(sealedReader{s, below}) })
}

// sealedReader decrypts what a reader of the store below returns.
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
