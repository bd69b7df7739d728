package transfer

import (
	"context"
	"errors"
	"fmt"

	"github.com/stet-dev/stet/blob"
)

// Stored gives access to blobs in stored form: compressed, as differences from
// others, sealed. Names are the stored names.
type Stored interface {
	// Sealing identifies how the store seals. One side can read the other's stored
	// form only if both return the same.
	Sealing() string
	// Name returns the stored name of a blob.
	Name(id blob.ID) blob.ID
	// Get returns a blob in stored form, with its base, or an error that wraps
	// blob.ErrNotFound.
	Get(ctx context.Context, name blob.ID) (blob.Blob, error)
	// Has reports which names are stored.
	Has(ctx context.Context, names ...blob.ID) ([]bool, error)
	// Put stores blobs in stored form. A base must come before the blobs that lean on
	// it.
	Put(ctx context.Context, blobs ...blob.Blob) error
}

// alike reports whether both sides can read each other's stored form.
func (m *mover) alike() bool {
	from, to := m.from.Stored, m.to.Stored
	return from != nil && to != nil && from.Sealing() == to.Sealing()
}

// stored returns a blob in stored form, after the bases that the target lacks, or
// nothing if the source cannot provide it. The caller has read the blob before: only
// readable blobs are moved, and sealed bytes do not show damage.
func (m *mover) stored(ctx context.Context, id blob.ID) ([]blob.Blob, error) {
	var chain []blob.Blob
	for name := m.from.Stored.Name(id); !name.IsZero(); {
		one, err := m.from.Stored.Get(ctx, name)
		if errors.Is(err, blob.ErrNotFound) {
			return nil, nil // stored elsewhere
		}
		if err != nil {
			return nil, fmt.Errorf("read stored form of blob %s: %w", id, err)
		}
		chain = append([]blob.Blob{one}, chain...)
		if name = one.Base; name.IsZero() {
			break
		}
		if _, ok := m.sent[name]; ok {
			break
		}
		has, err := m.to.Stored.Has(ctx, name)
		if err != nil {
			return nil, err
		}
		if has[0] {
			break
		}
	}
	for _, one := range chain {
		m.sent[one.ID] = struct{}{}
	}
	return chain, nil
}
