package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stet-dev/stet/internal/testenv"
)

func TestScanPathsSeesOnlyWhatIsNamed(t *testing.T) {
	root, store := t.TempDir(), newStore()
	write(t, root, map[string]string{"a/1": "one", "a/2": "two", "b/c/3": "three", "b/c/4": "four", "d/": "", "e/f/5": "five"})
	first := mustScan(t, store, root, nil, nil)

	write(t, root, map[string]string{"a/1": "ONE", "a/2": "TWO", "new/dir/x": "x", "new/dir/y": "y"})
	if err := os.RemoveAll(filepath.Join(root, "b")); err != nil {
		t.Fatal(err)
	}
	next := mustScanPaths(t, store, root, first.Index, []string{"a/1", "b/c/3", filepath.Join(root, "new/dir/x"), "no/such", ".git/config"}, nil)
	wantList(t, "changed", changeList(next.Changed),
		"modify a/1", "remove b", "remove b/c", "remove b/c/3", "remove b/c/4", "add new", "add new/dir", "add new/dir/x", "add new/dir/y")
	if next.Stats.Read != 3 {
		t.Errorf("read %d files, want 3", next.Stats.Read)
	}
	rest := mustScan(t, store, root, next.Index, nil)
	wantList(t, "rest", changeList(rest.Changed), "modify a/2")

	write(t, root, map[string]string{"e/f/6": "six", "e/f/5": "FIVE"})
	dir := mustScanPaths(t, store, root, rest.Index, []string{"e"}, nil)
	wantList(t, "directory", changeList(dir.Changed), "modify e/f/5", "add e/f/6")

	none := mustScanPaths(t, store, root, dir.Index, nil, nil)
	if none.Index.root != dir.Index.root || none.Stats.Files != 0 {
		t.Errorf("no paths: %d files looked at", none.Stats.Files)
	}
	whole := mustScanPaths(t, store, root, dir.Index, []string{"."}, nil)
	if whole.Tree != dir.Tree || whole.Stats.Files == 0 {
		t.Errorf("whole tree: %d files looked at", whole.Stats.Files)
	}
}

func TestScanPathsKindChanges(t *testing.T) {
	if !testenv.Links(t) {
		t.Skip("links cannot be made here")
	}
	root, store := t.TempDir(), newStore()
	write(t, root, map[string]string{"x": "file", "y/z": "dir", "l": "-> x"})
	first := mustScan(t, store, root, nil, nil)
	for _, name := range []string{"x", "y", "l"} {
		if err := os.RemoveAll(filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	write(t, root, map[string]string{"x/deep": "now a directory", "y": "-> x", "l": "now a file"})
	next := mustScanPaths(t, store, root, first.Index, []string{"x", "y/z", "l"}, nil)
	fresh := mustScan(t, newStore(), root, nil, nil)
	if next.Tree != fresh.Tree {
		t.Errorf("tree %v, want %v", listTree(t, store, next.Tree), changeList(next.Changed))
	}
	wantList(t, "changed", changeList(next.Changed), "modify l", "modify x", "add x/deep", "modify y", "remove y/z")
}

func TestScanPathsRefusesPathsOutside(t *testing.T) {
	root, store := t.TempDir(), newStore()
	write(t, root, map[string]string{"f": "x"})
	first := mustScan(t, store, root, nil, nil)
	for _, path := range []string{"", "../x", "/etc/passwd", "a/../../x", "a\x00b"} {
		_, err := ScanPaths(context.Background(), store, root, first.Index, []string{path}, nil)
		if !errors.Is(err, ErrBadPath) {
			t.Errorf("ScanPaths(%q) = %v, want ErrBadPath", path, err)
		}
		if _, err := Scan(context.Background(), store, root, nil, &Options{Touched: []string{path}}); !errors.Is(err, ErrBadPath) {
			t.Errorf("touched %q = %v, want ErrBadPath", path, err)
		}
	}
}

func TestScanPathsTouchesIgnoredFiles(t *testing.T) {
	root, store := t.TempDir(), newStore()
	write(t, root, map[string]string{".gitignore": "out/\n", "out/a": "1", "out/b": "2", "src/f": "3"})
	first := mustScan(t, store, root, nil, nil)
	hint := mustScanPaths(t, store, root, first.Index, []string{"out/a"}, nil)
	wantList(t, "hint alone", changeList(hint.Changed))
	next := mustScanPaths(t, store, root, hint.Index, nil, &Options{Touched: []string{"out/a"}})
	wantList(t, "touched", changeList(next.Changed), "add out", "add out/a")
	write(t, root, map[string]string{"out/a": "changed", "out/b": "changed"})
	later := mustScanPaths(t, store, root, next.Index, []string{"out/a", "out/b"}, nil)
	wantList(t, "later", changeList(later.Changed), "modify out/a")
	full := mustScan(t, store, root, later.Index, nil)
	wantList(t, "full", changeList(full.Changed))
}

// The cost of a hint is the directories above it, however large the tree is.
func TestScanPathsCostFollowsTheEdit(t *testing.T) {
	root, store := t.TempDir(), newStore()
	for i := range 40 {
		for j := range 25 {
			write(t, root, map[string]string{fmt.Sprintf("d%02d/s%d/f%02d", i, j%3, j): fmt.Sprint(i, j)})
		}
	}
	path := filepath.Join(t.TempDir(), "index")
	first := mustScan(t, store, root, nil, nil)
	if err := first.Index.Save(path); err != nil {
		t.Fatal(err)
	}
	prev, err := OpenIndex(path)
	if err != nil {
		t.Fatal(err)
	}
	defer prev.Close()
	write(t, root, map[string]string{"d07/s1/f01": "edited"})
	store.puts, store.gets = 0, 0
	next := mustScanPaths(t, store, root, prev, []string{"d07/s1/f01"}, nil)
	wantList(t, "changed", changeList(next.Changed), "modify d07/s1/f01")
	if store.puts != 4 || store.gets != 0 {
		t.Errorf("%d blobs put and %d read, want 4 and 0", store.puts, store.gets)
	}
	if got := next.Stats; got.Dirs != 3 || got.Files != 1 || got.Read != 1 {
		t.Errorf("stats = %+v, want 3 directories and 1 file", got)
	}
	// Without the index the nodes of the tree do.
	store.gets = 0
	bare := mustScanPaths(t, store, root, NewIndex(first.Tree), []string{"d07/s1/f01"}, nil)
	if bare.Tree != next.Tree || store.gets > 8 {
		t.Errorf("by nodes: tree %s, want %s; %d blobs read", bare.Tree, next.Tree, store.gets)
	}
}

// A name is judged by rules that hold for a while only: when the old ones are back,
// so is the name.
func TestScanPathsUnderRulesThatPass(t *testing.T) {
	root, store := t.TempDir(), newStore()
	write(t, root, map[string]string{"b": "b", "d/b": "b", ".gitignore": "x\n"})
	first := mustScan(t, store, root, nil, nil)
	write(t, root, map[string]string{"a": "a", "d/a": "a", ".gitignore": "a\n"})
	next := mustScanPaths(t, store, root, first.Index, []string{"a", "d/a"}, nil)
	wantList(t, "hinted", changeList(next.Changed))
	again := mustScanPaths(t, store, root, next.Index, []string{"a", "d/a"}, nil)
	wantList(t, "hinted again", changeList(again.Changed))
	write(t, root, map[string]string{".gitignore": "x\n"})
	last := mustScan(t, store, root, again.Index, nil)
	wantList(t, "whole", changeList(last.Changed), "add a", "add d/a")
}
