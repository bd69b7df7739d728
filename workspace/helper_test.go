package workspace

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/internal/testenv"
)

// mapStore keeps blobs in a map and, like every store, shares no memory.
type mapStore struct {
	mu    sync.Mutex
	blobs map[blob.ID][]byte
	puts  int
	gets  int
	fail  error // returned by Put
}

func newStore() *mapStore { return &mapStore{blobs: map[blob.ID][]byte{}} }

func (s *mapStore) Get(ctx context.Context, id blob.ID) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gets++
	data, ok := s.blobs[id]
	if !ok {
		return nil, blob.NotFound(id)
	}
	return slices.Clone(data), ctx.Err()
}

func (s *mapStore) Put(ctx context.Context, blobs ...blob.Blob) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		return s.fail
	}
	for _, b := range blobs {
		if blob.Sum(b.Data) != b.ID {
			return blob.ErrMismatch
		}
		s.puts++
		s.blobs[b.ID] = slices.Clone(b.Data)
	}
	return ctx.Err()
}

func (s *mapStore) Has(_ context.Context, ids ...blob.ID) ([]bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	has := make([]bool, len(ids))
	for i, id := range ids {
		_, has[i] = s.blobs[id]
	}
	return has, nil
}

func (s *mapStore) Flush(context.Context) error { return nil }

// write makes files below root: a name ending in / is a directory, a content
// beginning with "-> " a link, one beginning with "#!" executable.
func write(t testing.TB, root string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(root, name)
		var err error
		if mkErr := os.MkdirAll(filepath.Dir(path), 0o755); mkErr != nil {
			t.Fatal(mkErr)
		}
		switch {
		case strings.HasSuffix(name, "/"):
			err = os.MkdirAll(path, 0o755)
		case strings.HasPrefix(content, "-> "):
			err = os.Symlink(content[3:], path)
		case strings.HasPrefix(content, "#!"):
			err = os.WriteFile(path, []byte(content), 0o755)
		default:
			err = os.WriteFile(path, []byte(content), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// rounds returns how often to try what scans a tree.
func rounds(n int) int {
	if testenv.SlowFiles() {
		return (n + 19) / 20
	}
	return n
}

// letTick waits until what was written so far is in the past for the clock that
// stamps files. What was written in its current tick is looked at once more by
// the next scan, and some kernels stamp a tick ahead.
func letTick() {
	for written := stampClock(); stampClock() <= written+int64(30*time.Millisecond); time.Sleep(time.Millisecond) {
	}
}

func mustScan(t testing.TB, store blob.Store, root string, prev *Index, opts *Options) *Result {
	t.Helper()
	res, err := Scan(context.Background(), store, root, prev, opts)
	if err != nil {
		t.Fatal(err)
	}
	checkAdded(t, store, res)
	return res
}

func mustScanPaths(t testing.TB, store blob.Store, root string, prev *Index, paths []string, opts *Options) *Result {
	t.Helper()
	res, err := ScanPaths(context.Background(), store, root, prev, paths, opts)
	if err != nil {
		t.Fatal(err)
	}
	checkAdded(t, store, res)
	return res
}

// checkAdded compares what a scan says is new with what the stored trees say.
func checkAdded(t testing.TB, store blob.Store, res *Result) {
	t.Helper()
	if counting, ok := store.(*mapStore); ok {
		store = &mapStore{blobs: counting.blobs} // a look of ours does not count
	}
	before := map[string]Entry{}
	var missing bool // of Base a part is gone: then more counts as new
	if !res.Base.IsZero() {
		before[""] = Entry{Kind: Dir, ID: res.Base}
		missing = Walk(t.Context(), store, res.Base, func(path string, e Entry) error {
			before[path] = e
			return nil
		}) != nil
	}
	want := map[blob.ID]bool{}
	look := func(path string, e Entry) error {
		was := before[path]
		if was.Kind == e.Kind && was.ID == e.ID && was.Chunked == e.Chunked {
			return nil
		}
		want[e.ID] = true
		if !e.Chunked {
			return nil
		}
		data, err := store.Get(t.Context(), e.ID)
		if err != nil {
			return err
		}
		chunks, err := DecodeChunks(data)
		for _, c := range chunks {
			want[c.ID] = true
		}
		return err
	}
	err := errors.Join(look("", Entry{Kind: Dir, ID: res.Tree}), Walk(t.Context(), store, res.Tree, look))
	if err != nil {
		t.Fatalf("walk the new tree: %v", err)
	}
	got := map[blob.ID]bool{}
	for _, id := range res.Added {
		if got[id] {
			t.Errorf("added %s twice", id)
		}
		got[id] = true
		if !want[id] && !missing {
			t.Errorf("added %s, which the base has at the same place", id)
		}
	}
	for id := range want {
		if !got[id] {
			t.Errorf("%s is not among the added", id)
		}
	}
}

// listTree returns "path kind" lines of a tree.
func listTree(t testing.TB, store blob.Store, tree blob.ID) []string {
	t.Helper()
	var got []string
	err := Walk(context.Background(), store, tree, func(path string, e Entry) error {
		got = append(got, path+" "+e.Kind.String())
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func changeList(changes []Change) []string {
	var got []string
	for _, c := range changes {
		got = append(got, c.Op()+" "+c.Path)
	}
	return got
}

func skippedList(skipped []Skipped) []string {
	var got []string
	for _, s := range skipped {
		got = append(got, s.Path+": "+string(s.Reason))
	}
	return got
}

func wantList(t testing.TB, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %q\nwant %q", what, got, want)
	}
}

// materialise writes a tree to an empty directory.
func materialise(t testing.TB, store blob.Store, tree blob.ID, root string) {
	t.Helper()
	ctx := context.Background()
	modes := map[string]uint32{}
	err := Walk(ctx, store, tree, func(path string, e Entry) error {
		full := filepath.Join(root, path)
		switch e.Kind {
		case Dir:
			modes[full] = e.Mode
			return os.Mkdir(full, 0o700)
		case Symlink:
			target, err := ReadLink(ctx, store, e)
			if err != nil {
				return err
			}
			return os.Symlink(target, full)
		}
		modes[full] = e.Mode
		data, err := ReadFile(ctx, store, e)
		if err != nil {
			return err
		}
		return os.WriteFile(full, data, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	paths := make([]string, 0, len(modes))
	for path := range modes {
		paths = append(paths, path)
	}
	sort.Sort(sort.Reverse(sort.StringSlice(paths)))
	for _, path := range paths {
		m := modes[path]
		mode := fs.FileMode(m & 0o777)
		for bit, flag := range map[uint32]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
			if m&bit != 0 {
				mode |= flag
			}
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
}

// slowStore takes its time, so that there is progress to report.
type slowStore struct{ *mapStore }

func (s *slowStore) Put(ctx context.Context, blobs ...blob.Blob) error {
	time.Sleep(20 * time.Millisecond)
	return s.mapStore.Put(ctx, blobs...)
}
