package transfer

import (
	"context"
	"errors"
	"fmt"

	"github.com/stet-dev/stet/blob"
)

// Stored gives access to blobs as a store keeps them: compressed, as differences
// to others, sealed. Names are those under which it keeps them.
type Stored interface {
	// Sealing tells how the store seals. What one side stored the other one can read
	// only if both tell the same.
	Sealing() string
	// Name returns the name under which a blob is kept.
	Name(id blob.ID) blob.ID
	// Get returns a blob as it is kept, with its base, or an error that wraps
	// blob.ErrNotFound.
	Get(ctx context.Context, name blob.ID) (blob.Blob, error)
	// Has reports which names are kept.
	Has(ctx context.Context, names ...blob.ID) ([]bool, error)
	// Put keeps blobs as they are. A base must come before what leans on it.
	Put(ctx context.Context, blobs ...blob.Blob) error
}

// alike reports whether both sides can read what the other one stored.
func (m *mover) alike() bool {
	from, to := m.from.Stored, m.to.Stored
	return from != nil && to != nil && from.Sealing() == to.Sealing()
}

// stored returns a blob as the source keeps it, after the bases that the target
// lacks, or nothing if the source cannot tell. The caller has read it: only what can
// be read is worth moving, and sealed bytes do not show damage.
func (m *mover) stored(ctx context.Context, id blob.ID) ([]blob.Blob, error) {
	var chain []blob.Blob
	for name := m.from.Stored.Name(id); !name.IsZero(); {
		one, err := m.from.Stored.Get(ctx, name)
		if errors.Is(err, blob.ErrNotFound) {
			return nil, nil // kept elsewhere
		}
		if err != nil {
			return nil, fmt.Errorf("read blob %s as it is stored: %w", id, err)
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
