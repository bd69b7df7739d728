package postgres

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/internal/realservers"
	"github.com/stet-dev/stet/kv"
)

// TestACommitIsOneRoundTrip counts what commits of every ordinary kind send.
func TestACommitIsOneRoundTrip(t *testing.T) {
	dsn, trips := realservers.CountTrips(t, newDatabase(t, 15))
	db := openNode(t, dsn, &Options{PollInterval: time.Hour})
	tenant := newTenant(t, db)
	rows, blobs := tenant.Rows(), tenant.Blobs()
	version := func(key string) uint64 {
		row, err := rows.Get(t.Context(), key)
		if err != nil && !errors.Is(err, kv.ErrNotFound) {
			t.Fatal(err)
		}
		return row.Version
	}
	content := func(n int) blob.Blob { return blob.New(fmt.Appendf(nil, "content %d", n)) }
	for name, c := range map[string]struct {
		batch func(n int) *kv.Batch
		want  int64
	}{
		"set": {func(int) *kv.Batch { return set("a", "1") }, 1},
		"create": {func(n int) *kv.Batch {
			key := fmt.Sprint("new ", n)
			return &kv.Batch{Expect: []kv.Expect{{Key: key}}, Set: []kv.Set{{Key: key}}}
		}, 1},
		"compare and swap": {func(int) *kv.Batch {
			return &kv.Batch{Expect: []kv.Expect{{Key: "b", Version: version("b")}}, Set: []kv.Set{{Key: "b"}}}
		}, 1},
		"with a blob": {func(n int) *kv.Batch {
			one := content(n)
			if err := blobs.Put(t.Context(), one); err != nil {
				t.Fatal(err)
			}
			return &kv.Batch{Set: []kv.Set{{Key: "c"}}, Refs: []blob.ID{one.ID}}
		}, 1},
		"with a blob that is there": {func(n int) *kv.Batch {
			one := content(0)
			if n == 0 {
				if err := errors.Join(blobs.Put(t.Context(), one), blobs.Flush(t.Context())); err != nil {
					t.Fatal(err)
				}
			}
			return &kv.Batch{Set: []kv.Set{{Key: "d"}}, Refs: []blob.ID{one.ID}}
		}, 1},
		"like a save": {func(n int) *kv.Batch {
			if n == 0 {
				mustCommit(t, rows, set("record", "1"))
				mustCommit(t, rows, set("time 0", "1"))
			}
			one := content(1000 + n)
			if err := blobs.Put(t.Context(), one); err != nil {
				t.Fatal(err)
			}
			return &kv.Batch{
				Expect: []kv.Expect{{Key: "record", Version: version("record")}, {Key: fmt.Sprint("save ", n)}},
				Delete: []string{fmt.Sprint("time ", n)},
				Set:    []kv.Set{{Key: "head"}, {Key: fmt.Sprint("save ", n)}, {Key: fmt.Sprint("time ", n+1)}, {Key: "changed"}},
				Refs:   []blob.ID{one.ID},
			}
		}, 1},
		// A few statements, a look why they did nothing, and all of them.
		"delete what is missing": {func(int) *kv.Batch { return &kv.Batch{Delete: []string{"missing"}} }, 3},
		"keep absent": {func(int) *kv.Batch {
			return &kv.Batch{Expect: []kv.Expect{{Key: "missing"}}, Set: []kv.Set{{Key: "e"}}}
		}, 1},
		"delete a range": {func(int) *kv.Batch { return &kv.Batch{DeleteRange: []kv.Range{{Start: "x", End: "y"}}} }, 1},
	} {
		var got []int64
		for n := range 12 { // the first ones on each connection prepare statements
			b := c.batch(n)
			got = append(got, trips.Of(func() { mustCommit(t, rows, b) }))
		}
		least := got[0]
		for _, n := range got {
			least = min(least, n)
		}
		if least != c.want {
			t.Errorf("%s takes %d round trips, want %d: %v", name, least, c.want, got)
		}
	}
}

// What a few statements leave to the general pipeline, and what only one of two
// connections sees.
func TestCommitsThatAFewStatementsDoNotCover(t *testing.T) {
	dsn := newDatabase(t, 15)
	one, two := openNode(t, dsn, nil), openNode(t, dsn, nil)
	tenant := newTenant(t, one)
	rows, other := tenant.Rows(), tenantOf(t, two, tenant.Name())
	old := blob.New([]byte("of an older generation"))
	if err := errors.Join(tenant.Blobs().Put(t.Context(), old), tenant.Blobs().Flush(t.Context())); err != nil {
		t.Fatal(err)
	}
	generation, err := other.Blobs().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	mustCommit(t, rows, &kv.Batch{Set: []kv.Set{{Key: "a", Value: []byte("1")}}, Refs: []blob.ID{old.ID}})
	swept, err := other.Blobs().Sweep(t.Context(), generation, blob.SweepOptions{Live: func(blob.ID) bool { return false }})
	if err != nil || swept.Removed != 0 {
		t.Errorf("a blob that a commit referred to was swept: %+v, %v", swept, err)
	}
	row := wantRow(t, rows, "a", "1")
	for name, b := range map[string]*kv.Batch{
		"a deletion whose row is there":      {Expect: []kv.Expect{{Key: "a", Version: row.Version}}, Delete: []string{"missing"}, Set: []kv.Set{{Key: "b", Value: []byte("2")}}},
		"a deletion of what must be missing": {Expect: []kv.Expect{{Key: "missing"}}, Delete: []string{"missing"}, Set: []kv.Set{{Key: "c", Value: []byte("3")}}},
	} {
		if err := rows.Commit(t.Context(), b); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	wantRow(t, rows, "b", "2")
	wantRow(t, rows, "c", "3")
	mustCommit(t, rows, &kv.Batch{Expect: []kv.Expect{{Key: "a", Version: row.Version}}, Delete: []string{"a", "b"}})
	if _, err := rows.Get(t.Context(), "b"); !errors.Is(err, kv.ErrNotFound) {
		t.Errorf("a deleted row: %v", err)
	}
}
