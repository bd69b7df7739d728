package stet

import (
	"context"
	"fmt"

	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/upkeep"
)

// door lets nothing into a store that its own readers would refuse, whoever brings
// it: a service, an import, another store, or a caller of the row API. One such row
// would stop whatever reads many.
type door struct{ kv.Store }

// Commit implements kv.Store. A batch with a row that cannot be read is a
// kv.ErrInvalidBatch.
func (d door) Commit(ctx context.Context, b *kv.Batch) error {
	for _, set := range b.Set {
		if err := upkeep.CheckRow(kv.Row{Key: set.Key, Value: set.Value}); err != nil {
			// Without its class: nothing that is stored is damaged.
			return fmt.Errorf("%w: refused: %v", kv.ErrInvalidBatch, err)
		}
	}
	return d.Store.Commit(ctx, b)
}
