package checkpoint

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/internal/recall"
	"github.com/stet-dev/stet/internal/testenv"
	"github.com/stet-dev/stet/workspace"
)

// movedFrom takes a removed file with the same content for the one that was moved.
func movedFrom(removed []workspace.Change, added workspace.Change) *workspace.Change {
	for i := range removed {
		if removed[i].Before.ID == added.After.ID {
			return &removed[i]
		}
	}
	return nil
}

// TestRecalledVersionsAreThose compares the versions of services that remember trees with those
// of one that does not, while a history grows, is rewound, is stripped and is forgotten.
func TestRecalledVersionsAreThose(t *testing.T) {
	f := newFixture(t)
	f.opts.manyTrees, f.opts.Now = 1, time.Now
	f.reopen()
	plain := f.opts
	plain.IndexDir = ""
	rnd := rand.New(rand.NewPCG(3, 4))
	paths := []string{"a", "dir/b", "dir/sub/c", "dir"}
	var ids []string
	compare := func() {
		t.Helper()
		var at *Record
		all := f.names()
		for rec, err := range f.w.List(t.Context(), nil) {
			must(t, err)
			if at = rec; rnd.IntN(3) > 0 {
				break
			}
		}
		for _, path := range paths {
			store := &readsOf{Store: f.blobs}
			var got [2]*Versions
			for i, s := range []*Service{New(store, f.rows, &f.opts), New(f.blobs, f.rows, &plain)} {
				found, err := s.Versions(t.Context(), path, at, func(_ context.Context, added workspace.Change, removed []workspace.Change) (*workspace.Change, error) {
					return movedFrom(removed, added), nil
				})
				must(t, err)
				got[i] = found
			}
			if !reflect.DeepEqual(got[0], got[1]) {
				t.Fatalf("%s at %s of %v: got\n%+v, want\n%+v", path, at.Name(), all, got[0], got[1])
			}
		}
	}
	for turn := range uint64(testenv.Sizes(20, 60, 200)) {
		path := paths[rnd.IntN(3)]
		switch what := rnd.IntN(8); {
		case what == 0 && len(ids) > 3:
			f.rewind(RewindRequest{To: ids[rnd.IntN(len(ids))], Exact: true, Scope: FilesOnly})
		case what == 1:
			f.remove(path)
		case what == 2:
			if _, err := os.Stat(f.path(path)); err == nil {
				f.remove("dir/b")
				must(t, os.MkdirAll(f.path("dir"), 0o755))
				_ = os.Rename(f.path(path), f.path("dir/b"))
			}
		case what == 3 && len(ids) > 0:
			ws := f.w.ID()
			_, err := f.service().Strip(t.Context(), ws, map[string][]string{ids[rnd.IntN(len(ids))]: {path}})
			must(t, err)
		default:
			f.write(path, fmt.Sprint(turn))
		}
		ids = append(ids, f.after("one", turn+1).ID)
		compare()
		if turn == 15 {
			f.forget(Policy{MaxCount: 9})
			ids = nil
			compare()
		}
	}
}

// TestRecalledTreesAreNotReadAgain also loses, cuts and exchanges what is remembered.
func TestRecalledTreesAreNotReadAgain(t *testing.T) {
	f := newFixture(t)
	f.opts.manyTrees = 8
	var last *Record
	for n := range 20 {
		f.write("dir/file", fmt.Sprint(n/2), "other", fmt.Sprint(n))
		last = f.save(Request{})
	}
	dir := filepath.Join(f.opts.IndexDir, recall.Name)
	look := func() (versions, opened int) {
		t.Helper()
		store := &readsOf{Store: f.blobs}
		found, err := New(store, f.rows, &f.opts).Versions(t.Context(), "dir/file", last, nil)
		must(t, err)
		return len(found.List), store.opened
	}
	want := func(reads bool) {
		t.Helper()
		if n, opened := look(); n != 10 || (opened > 0) != reads {
			t.Errorf("%d versions with %d readers", n, opened)
		}
	}
	want(true)
	want(false)
	must(t, os.RemoveAll(dir))
	want(true)
	want(false)
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range entries {
		must(t, os.Truncate(filepath.Join(dir, e.Name()), 100))
	}
	want(true)
	want(false)
	_, err = f.service().Strip(t.Context(), f.w.ID(), map[string][]string{last.ID: {"other"}})
	must(t, err)
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("a strip left what was remembered: %v", err)
	}
}

func TestUnreadableSeenTrees(t *testing.T) {
	seen := &seenTrees{at: map[blob.ID]*workspace.Entry{}}
	e := &workspace.Entry{Name: "x", Kind: workspace.File, Mode: 0o644, Size: 5, Chunked: true, ID: blob.ID{7}}
	for i := range byte(9) {
		switch {
		case i < 3:
			seen.add(blob.ID{i}, nil)
		default:
			seen.add(blob.ID{i}, e)
		}
	}
	data := seen.encode()
	back := decodeSeen(data, "x")
	if back == nil || !reflect.DeepEqual(back.at, seen.at) || !reflect.DeepEqual(back.order, seen.order) {
		t.Fatalf("got %+v", back)
	}
	for n := range len(data) {
		if got := decodeSeen(data[:n], "x"); got != nil && len(got.order) == len(seen.order) {
			t.Errorf("%d bytes are read as all of them", n)
		}
	}
	if decodeSeen([]byte(strings.Repeat("\xff", 50)), "x") != nil {
		t.Error("another version is read")
	}
}
