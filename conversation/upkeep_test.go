package conversation_test

import (
	"context"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/upkeep"
)

// Collect and Check do the upkeep of the fixture's stores.
func (f *fixture) Collect(ctx context.Context, inventory upkeep.Inventory, opts *upkeep.CollectOptions) (upkeep.CollectResult, error) {
	return upkeep.New(upkeep.Stores{Blobs: f.blobs, Rows: f.rows, Inventory: inventory}).Collect(ctx, opts)
}

func (f *fixture) Check(ctx context.Context, opts *upkeep.CheckOptions) (*upkeep.Report, error) {
	return upkeep.New(upkeep.Stores{Blobs: f.blobs, Rows: f.rows, Inventory: f.mem}).Check(ctx, opts)
}

var noGrace = &upkeep.CollectOptions{Grace: -1}

func (f *fixture) count(t testing.TB) (n int) {
	t.Helper()
	check(t, f.mem.List(context.Background(), blob.ID{}, func(blob.Info) error { n++; return nil }))
	return n
}

// damagedStore says that some blobs are corrupt.
type damagedStore struct {
	blob.Store
	bad map[blob.ID]bool
}

func (d *damagedStore) Get(ctx context.Context, id blob.ID) ([]byte, error) {
	if d.bad[id] {
		return nil, blob.Corrupt(id, "for a test")
	}
	return d.Store.Get(ctx, id)
}
