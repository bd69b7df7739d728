package workspace

import (
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stet-dev/stet/internal/testenv"
)

// doubting returns the same index in another era: nothing is known of names.
func doubting(x *Index) *Index { return &Index{root: x.root, era: era{1}} }

// stampsTell reports whether stamps of directories can be relied on where the
// tests write. If not, every directory has to be listed by every scan.
func stampsTell(t *testing.T, root string) bool {
	t.Helper()
	d, err := openRoot(root)
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	tr, err := newTrust(d, nil, true)
	if err != nil {
		t.Fatal(err)
	}
	return tr.record
}

// wantListed checks how many directories a scan listed, given that it may rely
// on stamps.
func wantListed(t *testing.T, what string, root string, res *Result, want int64) {
	t.Helper()
	if !stampsTell(t, root) {
		want = res.Stats.Dirs
	}
	if res.Stats.listed != want {
		t.Errorf("%s: %d of %d directories listed, want %d", what, res.Stats.listed, res.Stats.Dirs, want)
	}
}

func TestKnownDirectoriesAreNotListed(t *testing.T) {
	root, store, first := indexedTree(t)
	all := first.Stats.Dirs
	wantListed(t, "first", root, first, all)
	second := mustScan(t, store, root, first.Index, nil)
	wantListed(t, "second", root, second, 0)
	if second.Stats.Dirs != all || second.Stats.Files != first.Stats.Files || second.Index.root != first.Index.root {
		t.Errorf("second: %+v, want the looks of %+v and the same index", second.Stats, first.Stats)
	}
	wantList(t, "not captured", skippedList(second.NotCaptured), skippedList(first.NotCaptured)...)

	path := filepath.Join(t.TempDir(), "index")
	if err := second.Index.Save(path); err != nil {
		t.Fatal(err)
	}
	saved, err := OpenIndex(path)
	if err != nil {
		t.Fatal(err)
	}
	defer saved.Close()
	wantListed(t, "saved", root, mustScan(t, store, root, saved, nil), 0)

	write(t, root, map[string]string{"d1/s1/f1": "in place", "d2/new": "a name"})
	letTick()
	third := mustScan(t, store, root, saved, nil)
	wantListed(t, "after a new name", root, third, 1)
	wantList(t, "changed", changeList(third.Changed), "modify d1/s1/f1", "add d2/new")
	wantListed(t, "after that", root, mustScan(t, store, root, third.Index, nil), 0)
}

// Stamps of another boot, or of another file system, prove nothing. They are
// replaced, in the saved index too, by what the scan found.
func TestStampsCountWithinAnEra(t *testing.T) {
	needsTrust(t)
	root, store, first := indexedTree(t)
	path := filepath.Join(t.TempDir(), "index")
	if err := doubting(first.Index).Save(path); err != nil {
		t.Fatal(err)
	}
	old, err := OpenIndex(path)
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	hinted := mustScanPaths(t, store, root, old, []string{"d1"}, nil)
	wantListed(t, "some paths", root, hinted, 4)
	wantListed(t, "whole", root, mustScan(t, store, root, hinted.Index, nil), first.Stats.Dirs)

	next := mustScan(t, store, root, old, nil)
	wantListed(t, "another era", root, next, first.Stats.Dirs)
	before := size(t, path)
	if err := next.Index.Save(path); err != nil {
		t.Fatal(err)
	}
	if grew := size(t, path) - before; grew > trailerLen {
		t.Errorf("the index grew by %d bytes, although only its era is new", grew)
	}
	saved, err := OpenIndex(path)
	if err != nil {
		t.Fatal(err)
	}
	defer saved.Close()
	wantListed(t, "saved", root, mustScan(t, store, root, saved, nil), 0)
}

// After a crash a directory may have a name and the stamp from before. Here the
// name is one that no tree holds, so that nothing else about the directory shows.
func TestStampThatWasLostIsNotTakenOver(t *testing.T) {
	root, store := t.TempDir(), newStore()
	write(t, root, map[string]string{"d/f": "x"})
	testenv.Mkfifo(t, filepath.Join(root, "d/fifo"), 0o644)
	letTick()
	first := mustScan(t, store, root, nil, nil)
	d := *first.Index.root.rec.Load().subs[0].rec.Load()
	if d.listed != (dirStamp{}) {
		t.Fatalf("stamp %+v of a directory with a FIFO", d.listed)
	}
	fd, err := openRoot(filepath.Join(root, "d"))
	if err != nil {
		t.Fatal(err)
	}
	defer fd.close()
	st, err := fd.stat()
	if err != nil {
		t.Fatal(err)
	}
	d.listed = dirStamp{mtime: st.mtime, ctime: st.ctime, ino: st.ino}
	top := *first.Index.root.rec.Load()
	top.subs = []*dirRef{newRef(&d)}
	res := &Result{Index: &Index{root: newRef(&top), era: era{1}}}
	for range 3 {
		res = mustScan(t, store, root, res.Index, nil)
		wantList(t, "not captured", skippedList(res.NotCaptured), "d/fifo: special file")
	}
}

func TestNamesOfKnownDirectoriesChange(t *testing.T) {
	at := func(root string) func(string) string {
		return func(name string) string { return filepath.Join(root, "d", name) }
	}
	cases := map[string]func(p func(string) string) error{
		"appears":      func(p func(string) string) error { return os.WriteFile(p("new"), nil, 0o644) },
		"appears last": func(p func(string) string) error { return os.Mkdir(p("zz"), 0o755) },
		"vanishes":     func(p func(string) string) error { return os.Remove(p("f")) },
		"is renamed":   func(p func(string) string) error { return os.Rename(p("f"), p("ff")) },
		"is replaced":  func(p func(string) string) error { return os.Rename(p("f"), p("g")) },
		"moves up":     func(p func(string) string) error { return os.Rename(p("sub/s"), p("s")) },
		"file to directory": func(p func(string) string) error {
			return errors.Join(os.Remove(p("f")), os.Mkdir(p("f"), 0o755))
		},
		"directory to link": func(p func(string) string) error {
			return errors.Join(os.RemoveAll(p("sub")), os.Symlink("f", p("sub")))
		},
		"link to file": func(p func(string) string) error {
			return errors.Join(os.Remove(p("l")), os.WriteFile(p("l"), []byte("f"), 0o644))
		},
		"change places":       func(p func(string) string) error { return exchange(p("sub"), p("f")) },
		"ignored to captured": func(p func(string) string) error { return os.Rename(p("x.o"), p("x")) },
		"ignored file to directory": func(p func(string) string) error {
			return errors.Join(os.Remove(p("x.o")), os.MkdirAll(p("x.o/y"), 0o755))
		},
		"no longer ignored": func(p func(string) string) error { return os.WriteFile(p("../.gitignore"), nil, 0o644) },
		"ignored by a new file": func(p func(string) string) error {
			return os.WriteFile(p(".gitignore"), []byte("g\nsub\n"), 0o644)
		},
		"appears, and the time is set back": func(p func(string) string) error {
			info, err := os.Stat(p("."))
			if err != nil {
				return err
			}
			return errors.Join(os.WriteFile(p("new"), nil, 0o644), os.Chtimes(p("."), time.Time{}, info.ModTime()))
		},
		"directory replaced by its like": func(p func(string) string) error {
			return errors.Join(os.Rename(p("sub"), p("../aside")), os.Mkdir(p("sub"), 0o755))
		},
	}
	files := map[string]string{
		".gitignore": "*.o\n", "d/f": "f", "d/g": "g", "d/sub/s": "s", "d/x.o": "ignored", "d/out.o/y": "ignored",
	}
	links := testenv.Links(t)
	if links {
		files["d/l"] = "-> f"
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			if !links && strings.Contains(name, "link") {
				t.Skip("links cannot be made here")
			}
			root, store := t.TempDir(), newStore()
			write(t, root, files)
			letTick()
			first := mustScan(t, store, root, nil, nil)
			wantListed(t, "unchanged", root, mustScan(t, store, root, first.Index, nil), 0)
			if err := change(at(root)); err != nil {
				t.Fatal(err)
			}
			next, fresh := mustScan(t, store, root, first.Index, nil), mustScan(t, store, root, NewIndex(first.Tree), nil)
			if next.Tree != fresh.Tree || !slices.Equal(next.NotCaptured, fresh.NotCaptured) {
				t.Errorf("by index %q, left out %v; afresh without %v", changeList(next.Changed), next.NotCaptured, fresh.NotCaptured)
			}
			if next.Tree == first.Tree && slices.Equal(next.NotCaptured, first.NotCaptured) {
				t.Error("nothing changed")
			}
		})
	}
}

// What cannot be captured is named by every scan, not only by the one that listed
// the directory.
func TestWhatIsLeftOutIsNamedAgain(t *testing.T) {
	root, store := t.TempDir(), newStore()
	write(t, root, map[string]string{"a/big": strings.Repeat("x", 101), "b/git~1": "x", "c/f": "x", "d/ok": "x", "d/.git/x": "x"})
	testenv.Mkfifo(t, filepath.Join(root, "c/fifo"), 0o644)
	opts := &Options{MaxFile: 100}
	var prev *Index
	for i := range 4 {
		letTick()
		res := mustScan(t, store, root, prev, opts)
		wantList(t, "not captured", skippedList(res.NotCaptured), "a/big: too large", "b/git~1: name not allowed", "c/fifo: special file", "d/.git: git repository")
		if i > 0 {
			wantListed(t, "later", root, res, 3)
		}
		prev = res.Index
	}
	prev = mustScanPaths(t, store, root, prev, []string{"a/big", "c/fifo"}, opts).Index
	write(t, root, map[string]string{"d/ok": strings.Repeat("y", 101)})
	prev = mustScanPaths(t, store, root, prev, []string{"d/ok"}, opts).Index
	res := mustScan(t, store, root, prev, opts)
	wantList(t, "not captured", skippedList(res.NotCaptured), "a/big: too large", "b/git~1: name not allowed", "c/fifo: special file", "d/.git: git repository", "d/ok: too large")
}

// A scan of some paths lists nothing, and spoils nothing for the next.
func TestHintsKeepWhatIsKnown(t *testing.T) {
	needsTrust(t)
	root, store, first := indexedTree(t)
	write(t, root, map[string]string{"d1/s1/f1": "in place"})
	hinted := mustScanPaths(t, store, root, first.Index, []string{"d1/s1/f1", "d1/none"}, nil)
	wantListed(t, "hinted", root, hinted, 0)
	wantListed(t, "after an edit", root, mustScan(t, store, root, hinted.Index, nil), 0)

	write(t, root, map[string]string{"d1/new": "1", "d1/other": "2"})
	hinted = mustScanPaths(t, store, root, hinted.Index, []string{"d1/new"}, nil)
	wantList(t, "hinted", changeList(hinted.Changed), "add d1/new")
	full := mustScan(t, store, root, hinted.Index, nil)
	wantListed(t, "after a new name", root, full, 1)
	wantList(t, "full", changeList(full.Changed), "add d1/other")
}

// Of an ignored directory only what was touched is known: once it is no longer
// ignored, it has to be listed.
func TestPartialDirectoriesAreNotKnown(t *testing.T) {
	for _, hints := range []bool{false, true} {
		root, store := t.TempDir(), newStore()
		write(t, root, map[string]string{".gitignore": "out\n", "out/a": "1", "out/b": "2", "out/sub/c": "3"})
		letTick()
		res, opts := mustScan(t, store, root, nil, nil), &Options{Touched: []string{"out/a"}}
		if hints {
			res = mustScanPaths(t, store, root, res.Index, nil, opts)
		} else {
			res = mustScan(t, store, root, res.Index, opts)
		}
		wantList(t, "touched", changeList(res.Changed), "add out", "add out/a")
		for range 2 {
			res = mustScan(t, store, root, res.Index, nil)
			wantList(t, "unchanged", changeList(res.Changed))
		}
		write(t, root, map[string]string{".gitignore": ""})
		res = mustScan(t, store, root, res.Index, nil)
		wantList(t, "no longer ignored", changeList(res.Changed), "modify .gitignore", "add out/b", "add out/sub", "add out/sub/c")
	}
}

// Names come and go in the very tick in which the last scan looked. Directories
// and links need not be read, so that many rounds fit into one tick.
func TestNamesChangeInTheTickOfTheScan(t *testing.T) {
	root, store := t.TempDir(), newStore()
	write(t, root, map[string]string{"d/": "", "e/": ""})
	want := map[string]string{"d": "dir", "e": "dir"}
	r := rand.New(rand.NewPCG(3, 3))
	prev := mustScan(t, store, root, nil, nil)
	believed, links := int64(0), testenv.Links(t)
	for round := range testenv.Scale(3000, 100000) {
		name, other := randomName(r), randomName(r)
		path := filepath.Join(root, name)
		var err error
		switch kind, there := want[name], want[name] != ""; {
		case there && want[other] == "" && r.IntN(2) == 0:
			err = os.Rename(path, filepath.Join(root, other))
			want[other] = kind
			delete(want, name)
		case there:
			err = os.Remove(path)
			delete(want, name)
		case r.IntN(2) == 0 || !links:
			err = os.Mkdir(path, 0o755)
			want[name] = "dir"
		default:
			err = os.Symlink("to", path)
			want[name] = "symlink"
		}
		if err != nil {
			t.Fatal(err)
		}
		prev = mustScan(t, store, root, prev.Index, nil)
		believed += prev.Stats.Dirs - prev.Stats.listed
		var lines []string
		for _, name := range slices.SortedFunc(maps.Keys(want), compareWalk) {
			lines = append(lines, name+" "+want[name])
		}
		if got := listTree(t, store, prev.Tree); !slices.Equal(got, lines) {
			t.Fatalf("round %d:\n got %q\nwant %q", round, got, lines)
		}
	}
	if believed == 0 && stampsTell(t, root) {
		t.Error("every directory was listed each time")
	}
}

func randomName(r *rand.Rand) string {
	return string("de"[r.IntN(2)]) + "/" + string("abcd"[r.IntN(4)])
}

// compareWalk orders paths as a walk does.
func compareWalk(a, b string) int {
	return slices.Compare(strings.Split(a, "/"), strings.Split(b, "/"))
}

// Names change while a scan is under way: whatever that scan saw, the next one
// sees what is there.
func TestNamesChangeDuringTheScan(t *testing.T) {
	root, store := t.TempDir(), newStore()
	write(t, root, map[string]string{"d/x/": "", "e/x/": ""})
	r := rand.New(rand.NewPCG(4, 4))
	prev := mustScan(t, store, root, nil, nil)
	for round := range testenv.Scale(300, 20000) {
		var ops [20][2]string
		for i := range ops {
			ops[i] = [2]string{randomName(r), randomName(r)}
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			for i, op := range ops { // most of them fail
				_ = os.Rename(filepath.Join(root, op[0]), filepath.Join(root, op[1]))
				if i%2 == 0 {
					_ = os.Mkdir(filepath.Join(root, op[0]), 0o755)
				} else {
					_ = os.Remove(filepath.Join(root, op[0]))
				}
			}
		})
		during := mustScan(t, store, root, prev.Index, nil)
		wg.Wait()
		prev = mustScan(t, store, root, during.Index, nil)
		if want := mustScan(t, store, root, doubting(during.Index), nil); prev.Tree != want.Tree {
			t.Fatalf("round %d: %q, want %q", round, listTree(t, store, prev.Tree), listTree(t, store, want.Tree))
		}
	}
}

// A stamp counts once the clock has left it behind, if it is a fine one.
func TestStampsThatAreOver(t *testing.T) {
	const ms, s = int64(time.Millisecond), int64(time.Second)
	tr := trust{began: 1000*s + 5*ms + 7}
	for _, c := range []struct {
		ctime int64
		want  bool
	}{
		{tr.began, false}, {tr.began + 1, false}, {tr.began - 1, true}, {tr.began + 10*s, false},
		{1000 * s, false}, {1000*s + 5*ms, false}, {900 * s, false}, {900*s + 1, true},
	} {
		if got := tr.over(dirStamp{ctime: c.ctime}); got != c.want {
			t.Errorf("ctime %d: over = %v, want %v", c.ctime, got, c.want)
		}
	}
}
