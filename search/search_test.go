package search_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/search"
	"github.com/stet-dev/stet/search/searchtest"
)

func TestContract(t *testing.T) {
	for name, path := range map[string]func(testing.TB) string{
		"file":   func(t testing.TB) string { return filepath.Join(t.TempDir(), "search.db") },
		"memory": func(testing.TB) string { return "" },
	} {
		t.Run(name, func(t *testing.T) {
			searchtest.Run(t, func(t testing.TB, conversations *conversation.Store, blobs blob.Store, rows kv.Store) search.Searcher {
				ix, err := search.Open(t.Context(), conversations, blobs, rows, &search.Options{Path: path(t)})
				check(t, err)
				return ix
			})
		})
	}
}

func sample(t testing.TB) *fixture {
	t.Helper()
	f := newFixture(t)
	f.save(t, "one",
		turn(t, "Please add retry to the checkout", think("a deadline helps"), read("checkout/pay.go", "func Pay() error"), shell("go test ./...", "exit code 1"), say("Retrying works now")),
		turn(t, "日本語の検索もできますか", say("Über die Straße")),
	)
	f.save(t, "two", turn(t, "remove the retry again", say("gone")))
	f.update(t)
	return f
}

// TestTwoIndexes is two processes on one file: what one has indexed the other
// finds, and neither repeats the other's work.
func TestTwoIndexes(t *testing.T) {
	f := sample(t)
	other := f.open(t, f.path)
	if got := find(t, other, "deadline", nil); len(got) != 1 {
		t.Errorf("the other index finds %q", got)
	}
	stats, err := other.Update(t.Context())
	check(t, err)
	if stats.Conversations != 0 {
		t.Errorf("the other index repeated %+v", stats)
	}
	f.save(t, "three", turn(t, "zebra"))
	_, err = other.Update(t.Context())
	check(t, err)
	if got := find(t, f.index, "zebra", nil); len(got) != 1 {
		t.Errorf("the first index finds %q", got)
	}
}

func TestDamagedIndexIsBuiltAgain(t *testing.T) {
	for name, damage := range map[string]func([]byte) []byte{
		"no database":    func([]byte) []byte { return []byte(strings.Repeat("not a database", 1000)) },
		"cut":            func(b []byte) []byte { return b[:len(b)/2] },
		"empty":          func([]byte) []byte { return nil },
		"pages of noise": func(b []byte) []byte { copy(b[4096:], strings.Repeat("\xa5", len(b)-4096)); return b },
		"older version":  func(b []byte) []byte { b[63] = 0; return b },
		"other program":  func(b []byte) []byte { b[68] = 1; return b },
	} {
		t.Run(name, func(t *testing.T) {
			f := sample(t)
			check(t, f.index.Close())
			data, err := os.ReadFile(f.path)
			check(t, err)
			check(t, os.WriteFile(f.path, damage(data), 0o600))
			ix := f.open(t, f.path)
			_, err = ix.Update(t.Context())
			check(t, err)
			if got := find(t, ix, "checkout", nil); len(got) != 2 {
				t.Errorf("found %q, want 2 hits", got)
			}
			if err := ix.Degraded(); err != nil {
				t.Errorf("degraded: %v", err)
			}
		})
	}
}

func TestNewerIndexIsLeftAlone(t *testing.T) {
	f := sample(t)
	check(t, f.index.Close())
	data, err := os.ReadFile(f.path)
	check(t, err)
	data[63] = 99
	check(t, os.WriteFile(f.path, data, 0o600))
	ix := f.open(t, f.path)
	_, err = ix.Update(t.Context())
	check(t, err)
	if got := find(t, ix, "checkout", nil); len(got) != 2 || ix.Degraded() == nil {
		t.Errorf("found %q, degraded: %v", got, ix.Degraded())
	}
	after, err := os.ReadFile(f.path)
	check(t, err)
	if !slices.Equal(after, data) {
		t.Error("the newer index was changed")
	}
}

func TestNoFile(t *testing.T) {
	f := sample(t)
	for _, path := range []string{"", "/dev/null/search.db"} {
		ix := f.open(t, path)
		_, err := ix.Update(t.Context())
		check(t, err)
		if got := find(t, ix, "checkout", nil); len(got) != 2 {
			t.Errorf("index at %q finds %q", path, got)
		}
		if degraded := ix.Degraded() != nil; degraded != (path != "") {
			t.Errorf("index at %q: degraded is %v", path, ix.Degraded())
		}
	}
	info, err := os.Stat(f.path)
	check(t, err)
	if info.Mode().Perm()&0o077 != 0 {
		t.Errorf("others may read the index: %v", info.Mode())
	}
}
