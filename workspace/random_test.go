package workspace

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stet-dev/stet/internal/testenv"
)

// mutate does something to a random path below root and returns what it may
// have changed.
func mutate(t *testing.T, r *rand.Rand, root string) []string {
	t.Helper()
	names := []string{"a", "b", "c.txt", "d\xfe", "é", " x", "-n", "new\nline", ".hid"}
	parts := []string{}
	for range 1 + r.IntN(4) {
		parts = append(parts, names[r.IntN(len(names))])
	}
	rel := strings.Join(parts, "/")
	path := filepath.Join(root, rel)
	_ = os.MkdirAll(filepath.Dir(path), 0o755) // fails where a file is above: then so does the rest
	switch r.IntN(8) {
	case 0:
		_ = os.RemoveAll(path)
	case 1:
		_ = os.Mkdir(path, 0o750)
	case 2:
		_ = os.Symlink(names[r.IntN(len(names))], path)
	case 3:
		if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSymlink == 0 {
			_ = os.Chmod(path, []os.FileMode{0o700, 0o755, 0o711 | os.ModeSetgid}[r.IntN(3)])
		}
	case 4:
		to := names[r.IntN(len(names))]
		_ = os.Rename(path, filepath.Join(root, to))
		return []string{rel, to}
	default:
		if info, err := os.Lstat(path); err != nil || info.Mode().IsRegular() {
			_ = os.WriteFile(path, []byte(strings.Repeat(fmt.Sprint(r.IntN(50)), r.IntN(2000))), 0o644)
		}
	}
	return []string{rel}
}

// For random trees: scan, bring back elsewhere, scan again gives the same tree;
// scans by index, by saved index and by hints give what a fresh one gives; and
// the changes that a scan lists are those that turn one tree into the other.
func TestRandomTrees(t *testing.T) {
	steps := 6
	if testenv.SlowFiles() {
		steps = 3
	}
	for seed := range testenv.Scale(7, 300) {
		r := rand.New(rand.NewPCG(uint64(seed), 5))
		root, store := t.TempDir(), newStore()
		prev := mustScan(t, store, root, nil, nil)
		for step := range steps {
			for range 1 + r.IntN(30) {
				mutate(t, r, root)
			}
			fresh := mustScan(t, newStore(), root, nil, &Options{Workers: 1 + r.IntN(5)})
			idx := prev.Index
			if r.IntN(2) == 0 {
				data, err := idx.MarshalBinary()
				if err != nil {
					t.Fatal(err)
				}
				if idx, err = ParseIndex(data); err != nil {
					t.Fatal(err)
				}
			}
			next := mustScan(t, store, root, idx, nil)
			if next.Tree != fresh.Tree {
				t.Fatalf("seed %d step %d: by index %q, fresh differs", seed, step, changeList(next.Changed))
			}
			checkChanges(t, store, prev, next)
			other := t.TempDir()
			materialise(t, store, next.Tree, other)
			if copied := mustScan(t, newStore(), other, nil, nil); copied.Tree != next.Tree {
				t.Fatalf("seed %d step %d: the tree brought back differs", seed, step)
			}
			hinted := mustScanPaths(t, store, root, next.Index, mutate(t, r, root), nil)
			prev = mustScan(t, store, root, hinted.Index, nil)
			if hinted.Tree != prev.Tree {
				t.Fatalf("seed %d step %d: hints missed %q", seed, step, changeList(prev.Changed))
			}
		}
	}
}

func checkChanges(t *testing.T, store *mapStore, from, to *Result) {
	t.Helper()
	edits := map[string]*Entry{}
	for _, c := range to.Changed {
		e := c.After
		if e != nil && e.Kind == Dir {
			e = &Entry{Kind: Dir, Mode: e.Mode}
		}
		edits[c.Path] = e
	}
	if got := mustEdit(t, store, from.Tree, edits); got != to.Tree {
		t.Fatalf("the listed changes %q do not make the new tree", changeList(to.Changed))
	}
}

func TestDeepAndWideTrees(t *testing.T) {
	root, store := t.TempDir(), newStore()
	name, depth, width := "d/", 300, 3000
	if testenv.SlowFiles() { // fewer directories, whose path is still longer than the 260 letters of old Windows
		name, depth, width = strings.Repeat("d", 30)+"/", 12, 300
	}
	deep := strings.Repeat(name, depth) + "leaf"
	files := map[string]string{deep: "deep"}
	for i := range width {
		files[fmt.Sprintf("wide/f%04d", i)] = fmt.Sprint(i)
	}
	write(t, root, files)
	res := mustScan(t, store, root, nil, nil)
	if e, err := Lookup(context.Background(), store, res.Tree, deep); err != nil || e.Size != 4 {
		t.Errorf("deep file: %+v, %v", e, err)
	}
	if got, want := len(listTree(t, store, res.Tree)), width+1+depth+1; got != want {
		t.Errorf("%d entries, want %d", got, want)
	}
	write(t, root, map[string]string{"wide/f0123": "changed", "wide/f2999x": "new"})
	next := mustScan(t, store, root, res.Index, nil)
	wantList(t, "changed", changeList(next.Changed), "modify wide/f0123", "add wide/f2999x")
}

// Paths longer than a tree may hold are named, not captured, and do not fail
// the rest. They can only be made step by step.
func TestPathsThatAreTooLong(t *testing.T) {
	if runtime.GOOS == "windows" && testenv.SlowFiles() {
		t.Skip("Wine does not come back from paths of more than 4096 bytes")
	}
	root, store := t.TempDir(), newStore()
	name := strings.Repeat("n", 200)
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	defer os.Chdir(wd)
	if err := os.Chdir(root); err != nil {
		t.Fatal(err)
	}
	for range 25 {
		if err := os.Mkdir(name, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chdir(name); err != nil {
			t.Fatal(err)
		}
	}
	res := mustScan(t, store, root, nil, nil)
	if len(res.NotCaptured) != 1 || res.NotCaptured[0].Reason != ReasonPathLength {
		t.Errorf("not captured: %v, want one path that is too long", res.NotCaptured)
	}
	if got := len(listTree(t, store, res.Tree)); got != 20 {
		t.Errorf("%d directories, want 20", got)
	}
}
