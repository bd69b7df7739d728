package cursorimport_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	conv "github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/foreign/cursor/cursorimport"
	"github.com/stet-dev/stet/foreign/cursor/internal/cursortest"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/kv/memkv"
	"github.com/stet-dev/stet/upkeep"
)

var errKilled = errors.New("killed")

// mortal is a target that dies at one of its changes, before or after it was
// made, and stays dead.
type mortal struct {
	mu    sync.Mutex // guards what follows
	left  int        // changes until it dies, -1 for never
	after bool       // the last one is made, but not acknowledged
	made  int
}

func (m *mortal) change(do func() error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.made++
	switch {
	case m.left == 0:
		return errKilled
	case m.left > 0:
		if m.left--; m.left == 0 {
			if m.after {
				_ = do()
			}
			return errKilled
		}
	}
	return do()
}

type mortalBlobs struct {
	blob.Store
	*mortal
}

func (s mortalBlobs) Put(ctx context.Context, blobs ...blob.Blob) error {
	return s.change(func() error { return s.Store.Put(ctx, blobs...) })
}

type mortalRows struct {
	kv.Store
	*mortal
}

func (s mortalRows) Commit(ctx context.Context, b *kv.Batch) error {
	return s.change(func() error { return s.Store.Commit(ctx, b) })
}

// memory returns a target in memory, and the same one that dies after n changes.
func memory(n int, after bool) (whole, dying cursorimport.Target, m *mortal) {
	mem := memblob.New()
	whole = cursorimport.Target{Blobs: blob.Checked(mem), Rows: memkv.New(mem)}
	m = &mortal{left: n, after: after}
	return whole, cursorimport.Target{Blobs: mortalBlobs{whole.Blobs, m}, Rows: mortalRows{whole.Rows, m}}, m
}

// imported returns what an import left: all rows but those of writers, and the
// history by root.
func imported(t testing.TB, dst cursorimport.Target) map[string]string {
	t.Helper()
	rows := allRows(t, dst.Rows)
	maps.DeleteFunc(rows, func(key, _ string) bool {
		return cursortest.OwnRow(key) || strings.HasPrefix(key, "stet:conversation:") // epochs count the openings
	})
	store := conv.New(dst.Blobs, dst.Rows, nil)
	page, err := store.List(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range page.Conversations {
		rows["labels of "+info.ID] = fmt.Sprint(info.Title, info.Labels)
	}
	report, err := upkeep.New(upkeep.Stores{Blobs: dst.Blobs, Rows: dst.Rows}).Check(t.Context(), &upkeep.CheckOptions{ReadData: true})
	if err != nil || !report.OK() {
		t.Fatalf("check: %v, %+v", err, report)
	}
	return rows
}

// TestImportKilledAnywhereIsFinishedByTheNext kills an import at every change of
// the target; what is there then is sound, and a second import makes it whole.
func TestImportKilledAnywhereIsFinishedByTheNext(t *testing.T) {
	src := cursortest.Open(t, "../testdata/state.vscdb", nil)
	_, target, life := memory(-1, false)
	importAll(t, src, target, nil)
	want := imported(t, target)
	if life.made < 10 {
		t.Fatalf("an import makes %d changes; the test would be hollow", life.made)
	}
	for _, after := range []bool{false, true} {
		for n := 1; n <= life.made; n++ {
			whole, dying, _ := memory(n, after)
			if _, err := cursorimport.Import(t.Context(), src, dying, nil); !errors.Is(err, errKilled) {
				t.Fatalf("killed at change %d: %v", n, err)
			}
			imported(t, whole)
			importAll(t, src, whole, nil)
			if d := cmp.Diff(want, imported(t, whole)); d != "" {
				t.Fatalf("killed at change %d (made: %v), then again: %s", n, after, d)
			}
		}
	}
}

// TestCollectionDuringImport removes what an import has put before it is
// referred to.
func TestCollectionDuringImport(t *testing.T) {
	src := cursortest.Open(t, "../testdata/state.vscdb", nil)
	mem := memblob.New()
	rows := memkv.New(mem)
	sweeping := &sweepingRows{Store: rows, sweep: func() {
		res, err := upkeep.New(upkeep.Stores{Blobs: blob.Checked(mem), Rows: rows, Inventory: mem}).Collect(t.Context(), &upkeep.CollectOptions{Grace: -1})
		if err != nil || res.Removed == 0 {
			t.Errorf("collect removed %d, %v", res.Removed, err)
		}
	}}
	dst := cursorimport.Target{Blobs: blob.Checked(mem), Rows: sweeping}
	r := importAll(t, src, dst, nil)
	if r.Conversations != 2 || sweeping.sweep != nil {
		t.Errorf("result = %+v", r)
	}
	imported(t, cursorimport.Target{Blobs: dst.Blobs, Rows: rows})
}

type sweepingRows struct {
	kv.Store
	sweep func() // nil once it was called
}

func (s *sweepingRows) Commit(ctx context.Context, b *kv.Batch) error {
	if s.sweep != nil && len(b.Refs) > 0 {
		s.sweep()
		s.sweep = nil
	}
	return s.Store.Commit(ctx, b)
}
