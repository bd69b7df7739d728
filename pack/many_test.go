package pack_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/pack"
)

// lender is a driver that has one reader to lend and whose rows cannot be read
// while it is lent, like one with a single connection.
type lender struct {
	blob.Store
	lent  bool
	loans int
}

func (l *lender) ReadMany(_ context.Context, fn func(blob.Reader) error) error {
	l.lent = true
	l.loans++
	defer func() { l.lent = false }()
	return fn(l.Store)
}

type lenderRows struct {
	kv.Store
	l *lender
}

func (r lenderRows) Get(ctx context.Context, key string) (kv.Row, error) {
	if r.l.lent {
		return kv.Row{}, errors.New("rows are read while the reader is lent")
	}
	return r.Store.Get(ctx, key)
}

// TestReadManyEndsBeforeRowsAreRead reads blobs of the driver, of a pack, of a
// conversation that was archived meanwhile, and none.
func TestReadManyEndsBeforeRowsAreRead(t *testing.T) {
	w := newWorld(t, nil)
	open, archived, late := w.fill("open", 5), w.fill("archived", 5), w.fill("late", 5)
	w.archive("archived", archived)
	l := &lender{Store: w.blobs}
	node := pack.New(pack.Driver{Blobs: l, Rows: lenderRows{w.rows, l}, Objects: w.objects, Lister: w.blobs}, nil)
	for _, id := range []string{"open", "archived", "late"} {
		w.dump(node.Rows(), id)
	}
	w.archive("late", late)
	absent := blob.Sum([]byte("nobody has it"))
	err := blob.ReadMany(w.ctx, node.Blobs(), func(r blob.Reader) error {
		for i := range 5 {
			for name, ids := range map[string][]blob.ID{"open": open, "archived": archived, "late": late} {
				data, err := r.Get(w.ctx, ids[i])
				if want := fmt.Sprintf("%s save %d", name, i+1); err != nil || string(data) != want {
					t.Errorf("get: %q, %v, want %q", data, err, want)
				}
			}
			if _, err := r.Get(w.ctx, absent); !errors.Is(err, blob.ErrNotFound) {
				t.Errorf("get of what nobody has: %v", err)
			}
			has, err := r.Has(w.ctx, open[i], archived[i], late[i], absent)
			if err != nil || fmt.Sprint(has) != "[true true true false]" {
				t.Errorf("has: %v, %v", has, err)
			}
		}
		return nil
	})
	w.must(err)
	if l.lent || l.loans == 0 {
		t.Errorf("lent %v after %d loans", l.lent, l.loans)
	}
	before := l.loans
	w.must(blob.ReadMany(w.ctx, node.Blobs(), func(r blob.Reader) error {
		for _, id := range open {
			if _, err := r.Get(w.ctx, id); err != nil {
				return err
			}
		}
		return nil
	}))
	if l.loans != before+1 {
		t.Errorf("%d loans for blobs that the driver has, want 1", l.loans-before)
	}
}
