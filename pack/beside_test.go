package pack_test

import (
	"context"
	"errors"
	"iter"
	"sync/atomic"
	"testing"

	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/pack"
)

// readRows counts the reads of single rows and ranges, but not ScanBeside, which databases
// do with one statement.
type readRows struct {
	kv.Store
	n atomic.Int64
}

func (r *readRows) Get(ctx context.Context, key string) (kv.Row, error) {
	r.n.Add(1)
	return r.Store.Get(ctx, key)
}

func (r *readRows) Scan(ctx context.Context, in kv.Range, opts kv.ScanOptions) iter.Seq2[kv.Row, error] {
	r.n.Add(1)
	return r.Store.Scan(ctx, in, opts)
}

// TestRowsBesideArchivedOnes reads what belongs to conversations that are open, archived
// and damaged: it is what single reads give, and once a node knows that there are archived
// ones, these take no more reads.
func TestRowsBesideArchivedOnes(t *testing.T) {
	w := newWorld(t, nil)
	ids := []string{"archived", "archived: too", "damaged", "empty", "open"}
	for _, id := range ids {
		w.must(w.rows.Commit(w.ctx, &kv.Batch{Set: []kv.Set{{Key: keyspace.Conversation(id), Value: []byte(id)}}}))
		if id == "empty" {
			continue
		}
		blobs := w.fill(id, 3)
		if id != "open" {
			w.archive(id, blobs)
		}
	}
	catalog, err := w.rows.Get(w.ctx, keyspace.Pack("damaged"))
	w.must(err)
	catalog.Value[len(catalog.Value)/2] ^= 1
	w.must(w.rows.Commit(w.ctx, &kv.Batch{Set: []kv.Set{{Key: catalog.Key, Value: catalog.Value}}}))
	counted := &readRows{Store: w.rows}
	driver := w.driver()
	driver.Rows = counted
	rows := pack.New(driver, nil).Rows()
	beside := keyspace.BesideConversation()
	for round := range 3 {
		for _, id := range ids {
			only := kv.Range{Start: keyspace.Conversation(id), End: keyspace.Conversation(id) + "\x00"}
			before := counted.n.Load()
			got, err := rows.ScanBeside(w.ctx, only, kv.ScanOptions{}, beside...)
			reads := counted.n.Load() - before
			want, wantErr := kv.EachBeside(w.ctx, rows, only, kv.ScanOptions{}, beside...)
			if errors.Is(err, kv.ErrCorrupt) != errors.Is(wantErr, kv.ErrCorrupt) || len(got) != len(want) {
				t.Fatalf("%s: %v, %v, want %v, %v", id, got, err, want, wantErr)
			}
			for i, found := range got {
				if found.Key != want[i].Key || len(found.Rows) != len(beside) || len(found.Errs) != len(beside) {
					t.Fatalf("%s: %+v, want %+v", id, found, want[i])
				}
				for k, row := range found.Rows {
					other := want[i].Rows[k]
					if row.Key != other.Key || row.Version != other.Version || string(row.Value) != string(other.Value) {
						t.Errorf("%s, row %d: %+v, want %+v", id, k, row, other)
					}
					if errors.Is(found.Errs[k], kv.ErrCorrupt) != errors.Is(want[i].Errs[k], kv.ErrCorrupt) || id == "damaged" && k > 0 && found.Errs[k] == nil {
						t.Errorf("%s, row %d: %v, want %v", id, k, found.Errs[k], want[i].Errs[k])
					}
				}
			}
			if round > 0 && id[0] == 'a' && reads > 0 {
				t.Errorf("%s took %d reads more", id, reads)
			}
		}
	}
}
