//go:build unix

package workspace

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stet-dev/stet/internal/testenv"
)

// writtenFile describes a file as its writer would.
func writtenFile(t *testing.T, path string, e Entry) Written {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	return Written{ID: e.ID, Chunked: e.Chunked, Size: e.Size, Inode: testenv.Inode(t, path), Mtime: info.ModTime().UnixNano()}
}

func TestScanBelievesTheWriter(t *testing.T) {
	needsTrust(t)
	root, store := t.TempDir(), newStore()
	write(t, root, map[string]string{"d/same": "one", "d/later": "one", "d/other": "one"})
	first := mustScan(t, store, root, nil, nil)
	write(t, root, map[string]string{"d/same": "two", "d/later": "two", "d/other": "two"})
	second := mustScan(t, newStore(), root, nil, nil)
	e, err := PutFile(t.Context(), store, fileOf(t, filepath.Join(root, "d/same")))
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]Written{}
	for _, name := range []string{"d/same", "d/later", "d/other"} {
		known[name] = writtenFile(t, filepath.Join(root, name), e)
	}
	time.Sleep(20 * time.Millisecond) // several ticks of the clock that stamps files
	write(t, root, map[string]string{"d/later": "TWO"})
	if err := os.Remove(filepath.Join(root, "d/other")); err != nil {
		t.Fatal(err)
	}
	write(t, root, map[string]string{"d/other": "two"}) // equal, but another file

	got := mustScanPaths(t, store, root, first.Index, []string{"d"}, &Options{Written: known})
	if got.Stats.Read != 2 {
		t.Errorf("read %d files, want the two that are not as they were left", got.Stats.Read)
	}
	want := mustScan(t, newStore(), root, nil, nil)
	if got.Tree != want.Tree || got.Tree == second.Tree {
		t.Errorf("tree %s, want %s", got.Tree, want.Tree)
	}
	if again := mustScan(t, store, root, got.Index, nil); again.Tree != want.Tree || again.Stats.Read != 0 {
		t.Errorf("the next scan read %d files, want none", again.Stats.Read)
	}
}

func fileOf(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}
