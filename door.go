package stet

import (
	"context"
	"fmt"

	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/upkeep"
)

// door rejects rows that the store's own readers would reject, whatever their source:
// a service, an import, another store, or a caller of the row API. One such row would
// fail every read of many rows.
type door struct{ kv.Store }

// Commit implements kv.Store. A batch with an unreadable row fails with
// kv.ErrInvalidBatch.
func (d door) Commit(ctx context.Context, b *kv.Batch) error {
	for _, set := range b.Set {
		if err := upkeep.CheckRow(kv.Row{Key: set.Key, Value: set.Value}); err != nil {
			// Drop its class: no stored data is damaged.
			return fmt.Errorf("%w: refused: %v", kv.ErrInvalidBatch, err)
		}
	}
	return d.Store.Commit(ctx, b)
}
