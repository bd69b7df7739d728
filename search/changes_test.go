package search_test

import (
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"testing"

	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/search"
)

// changes counts the rows of changes.
func (f *fixture) changes(t testing.TB) (n int) {
	t.Helper()
	for _, err := range f.rows.Scan(t.Context(), keyspace.AllChanged(), kv.ScanOptions{KeysOnly: true}) {
		check(t, err)
		n++
	}
	return n
}

// fill saves conversations c0, c1, …
func (f *fixture) fill(t testing.TB, n int) {
	t.Helper()
	for i := range n {
		f.save(t, fmt.Sprint("c", i), turn(t, fmt.Sprint("common word", i)))
	}
}

// counting counts the rows that a store returns.
type counting struct {
	kv.Store
	rows int
}

func (c *counting) Get(ctx context.Context, key string) (kv.Row, error) {
	c.rows++
	return c.Store.Get(ctx, key)
}

func (c *counting) Scan(ctx context.Context, r kv.Range, opts kv.ScanOptions) iter.Seq2[kv.Row, error] {
	return func(yield func(kv.Row, error) bool) {
		for row, err := range c.Store.Scan(ctx, r, opts) {
			c.rows++
			if !yield(row, err) {
				return
			}
		}
	}
}

// TestUpdateReadsOnlyWhatChanged counts rows: what an update costs does not depend on the
// number of conversations.
func TestUpdateReadsOnlyWhatChanged(t *testing.T) {
	defer search.SetTrimAt(10)()
	f := newFixture(t)
	f.fill(t, 300)
	rows := &counting{Store: f.rows}
	ix, err := search.Open(t.Context(), conversation.New(f.blobs, rows, nil), f.blobs, rows, &search.Options{Path: f.path})
	check(t, err)
	defer ix.Close()
	update := func() int {
		rows.rows = 0
		_, err := ix.Update(t.Context())
		check(t, err)
		return rows.rows
	}
	if n := update(); n < 300 {
		t.Errorf("the first update read %d rows", n)
	}
	if n := f.changes(t); n > 0 {
		t.Errorf("%d changes are kept", n)
	}
	if n := update(); n > 5 {
		t.Errorf("without a change %d rows were read", n)
	}
	check(t, f.SetTitle(t.Context(), "c7", "zebra"))
	if n := update(); n > 30 {
		t.Errorf("for one change %d rows were read", n)
	}
	if got := find(t, ix, "zebra", nil); len(got) != 1 {
		t.Errorf("found %q", got)
	}
}

// TestTrimmedChangesAreNotMissed lets one index trim what another, or an older copy of
// its own file, has not seen.
func TestTrimmedChangesAreNotMissed(t *testing.T) {
	defer search.SetTrimAt(3)()
	f := newFixture(t)
	memory, copied := f.open(t, ""), filepath.Join(t.TempDir(), "old.db")
	f.fill(t, 2)
	f.update(t)
	_, err := memory.Update(t.Context())
	check(t, err)
	check(t, f.index.Truncate(t.Context()))
	data, err := os.ReadFile(f.path)
	check(t, err)
	check(t, os.WriteFile(copied, data, 0o600))
	for i := range 9 {
		f.save(t, fmt.Sprint("late", i), turn(t, fmt.Sprint("zebra", i)))
	}
	check(t, f.Delete(t.Context(), "c0", nil))
	f.update(t)
	if n := f.changes(t); n > 3 {
		t.Fatalf("%d changes are kept", n)
	}
	for name, ix := range map[string]*search.Index{"memory": memory, "an older copy": f.open(t, copied)} {
		_, err := ix.Update(t.Context())
		check(t, err)
		if got := find(t, ix, "zebra", nil); len(got) != 9 {
			t.Errorf("%s finds %q", name, got)
		}
		if got := find(t, ix, "word0", nil); len(got) != 0 {
			t.Errorf("%s finds the removed %q", name, got)
		}
	}
}

// TestIndexInMemoryTrimsNothing leaves changes to the index that lasts.
func TestIndexInMemoryTrimsNothing(t *testing.T) {
	defer search.SetTrimAt(3)()
	f := newFixture(t)
	memory := f.open(t, "")
	f.fill(t, 9)
	for range 2 {
		_, err := memory.Update(t.Context())
		check(t, err)
	}
	if n := f.changes(t); n != 9 {
		t.Errorf("%d changes are kept, want 9", n)
	}
}

// TestIndexOfTheVersionBefore is kept: only what changed is read.
func TestIndexOfTheVersionBefore(t *testing.T) {
	f := sample(t)
	f.index.WithoutChanges(t)
	check(t, f.index.Close())
	f.save(t, "three", turn(t, "zebra"))
	f.index = f.open(t, f.path)
	if stats := f.update(t); stats.Conversations != 1 {
		t.Errorf("the update did %+v", stats)
	}
	if got := find(t, f.index, "zebra", nil); len(got) != 1 {
		t.Errorf("found %q", got)
	}
}

// TestEndedUpdateContinues ends the first update in the middle.
func TestEndedUpdateContinues(t *testing.T) {
	f := newFixture(t)
	f.fill(t, 20)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	left := 10
	source := conversation.New(f.blobs, &ending{f.rows, func() {
		if left--; left == 0 {
			cancel()
		}
	}}, nil)
	ix, err := search.Open(t.Context(), source, f.blobs, f.rows, &search.Options{Path: f.path})
	check(t, err)
	defer ix.Close()
	if _, err := ix.Update(ctx); err == nil {
		t.Fatal("the update was not ended")
	}
	if done, total := ix.Progress(); done != 0 || total != 0 {
		t.Errorf("progress %d of %d while nothing runs", done, total)
	}
	f.update(t)
	if got := find(t, f.index, "common", &search.SearchOptions{Limit: 100}); len(got) != 20 {
		t.Errorf("found %d, want 20", len(got))
	}
	f.rebuilt(t)
}

// ending calls a function at each look at a row.
type ending struct {
	kv.Store
	look func()
}

func (e *ending) Get(ctx context.Context, key string) (kv.Row, error) {
	e.look()
	return e.Store.Get(ctx, key)
}

// rebuilt compares the index with a new one.
func (f *fixture) rebuilt(t testing.TB) {
	t.Helper()
	before := f.index.Dump(t)
	_, err := f.index.Rebuild(t.Context())
	check(t, err)
	if after := f.index.Dump(t); fmt.Sprint(before) != fmt.Sprint(after) {
		t.Errorf("following all changes gave %d messages, a rebuild %d", len(before), len(after))
	}
}
