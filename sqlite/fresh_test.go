package sqlite

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/kv"
)

// openAgain opens a store that is open already, as another process would.
func openAgain(t *testing.T, db *DB) *DB {
	t.Helper()
	other, err := Open(t.Context(), db.dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := other.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return other
}

// TestFreshEndsWithTheGeneration lets a collector elsewhere take blobs that this
// process has just stored, looked for and committed.
func TestFreshEndsWithTheGeneration(t *testing.T) {
	ctx := t.Context()
	db := openTest(t, nil)
	gone, stays := blob.New([]byte("nobody needs this")), blob.New([]byte("somebody needs this"))
	batch := &kv.Batch{Refs: []blob.ID{gone.ID, stays.ID}, Set: []kv.Set{{Key: "k"}}}
	if err := db.Blobs().Put(ctx, gone, stays); err != nil {
		t.Fatal(err)
	}
	for range 2 { // once from the put, once from what is remembered
		if err := db.Rows().Commit(ctx, batch); err != nil {
			t.Fatal(err)
		}
	}
	if has, err := db.Blobs().Has(ctx, gone.ID, stays.ID); err != nil || !has[0] || !has[1] {
		t.Fatalf("before the collector: has %v, error %v", has, err)
	}

	other := openAgain(t, db).Blobs()
	number, err := other.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	swept, err := other.Sweep(ctx, number, blob.SweepOptions{Live: func(id blob.ID) bool { return id == stays.ID }})
	if err != nil || swept.Removed != 1 {
		t.Fatalf("sweep removed %d blobs, want 1; error %v", swept.Removed, err)
	}

	if has, err := db.Blobs().Has(ctx, gone.ID, stays.ID); err != nil || has[0] || !has[1] {
		t.Errorf("after the collector: has %v, error %v", has, err)
	}
	var missing *kv.MissingBlobsError
	if err := db.Rows().Commit(ctx, batch); !errors.As(err, &missing) || len(missing.IDs) != 1 || missing.IDs[0] != gone.ID {
		t.Errorf("commit that names a swept blob: %v", err)
	}
	leaning := blob.New([]byte("leans on it"))
	leaning.Base = gone.ID
	if err := db.Blobs().Put(ctx, leaning); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("put that leans on a swept blob: %v", err)
	}
}

// TestFreshIsBounded puts more than is remembered.
func TestFreshIsBounded(t *testing.T) {
	var f fresh
	name := func(i int) blob.ID { return blob.Sum(fmt.Append(nil, i)) }
	for i := range 5 * freshLimit {
		f.add(7, map[blob.ID]bool{name(i): true})
		if len(f.young)+len(f.older) > 2*freshLimit {
			t.Fatalf("%d blobs are remembered", len(f.young)+len(f.older))
		}
	}
	if last := 5*freshLimit - 1; !f.has(7, name(last)) || !f.has(7, name(last-freshLimit/2)) || f.has(7, name(0)) {
		t.Error("those that came last are not remembered, or the first is")
	}
	if f.has(8, name(5*freshLimit-1)) {
		t.Error("a blob is taken for one of another generation")
	}
}

// TestLogIsMovedBesideWriters writes much more than the log may hold and waits for
// it to start over, which needs a commit after it was moved.
func TestLogIsMovedBesideWriters(t *testing.T) {
	ctx := t.Context()
	db := openTest(t, nil)
	moveLogOften(db, 50)
	const limit = 4 << 20 // of 40 MB
	for i := range 200 {
		for k := range 50 {
			if err := db.Blobs().Put(ctx, blob.New(fmt.Appendf(nil, "%4000d", i*50+k))); err != nil {
				t.Fatal(err)
			}
		}
		if err := db.Blobs().Flush(ctx); err != nil {
			t.Fatal(err)
		}
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		info, err := os.Stat(db.path() + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() < limit {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the log has %d bytes", info.Size())
		}
		if err := db.Rows().Commit(ctx, &kv.Batch{Set: []kv.Set{{Key: "k"}}}); err != nil {
			t.Fatal(err)
		}
	}
}
