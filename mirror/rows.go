package mirror

import (
	"context"
	"errors"

	"github.com/stet-dev/stet/kv"
)

// Rows returns rows whose commits fetch back blobs that the local store lost: a commit
// names blobs, and the driver below knows only its own.
func (s *Store) Rows(inner kv.Store) kv.Store { return &fetching{inner, s} }

type fetching struct {
	kv.Store
	mirror *Store
}

func (f *fetching) Commit(ctx context.Context, b *kv.Batch) error {
	err := f.Store.Commit(ctx, b)
	var missing *kv.MissingBlobsError
	if !errors.As(err, &missing) {
		return err
	}
	for _, id := range missing.IDs {
		if _, getErr := f.mirror.Get(ctx, id); getErr != nil {
			return err // what callers can act on
		}
	}
	return f.Store.Commit(ctx, b)
}
