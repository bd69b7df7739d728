package workspace

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/internal/testenv"
)

func TestScanCapturesEveryKind(t *testing.T) {
	root, store := t.TempDir(), newStore()
	files := map[string]string{
		"a.txt":          "hello",
		"run.sh":         "#!/bin/sh\n",
		"empty/":         "",
		"sub/deep/b.bin": "\x00\xff\x00",
		"zero":           "",
	}
	want := []string{"a.txt file", "empty dir", "run.sh file", "sub dir", "sub/deep dir", "sub/deep/b.bin file", "zero file"}
	mode := uint32(0o755)
	if runtime.GOOS == "windows" { // names are UTF-16 there, and no bit says what a program is
		mode = 0o644
	} else {
		files["bad\xffname.txt"] = "not utf-8"
		want = append(want, "bad\xffname.txt file")
	}
	if testenv.Links(t) {
		files["link"], files["dangling"] = "-> sub/deep", "-> /no/such/place"
		want = append(want, "dangling symlink", "link symlink")
	}
	write(t, root, files)
	res := mustScan(t, store, root, nil, nil)
	slices.Sort(want)
	wantList(t, "tree", listTree(t, store, res.Tree), want...)
	if len(res.NotCaptured) > 0 || res.Changed != nil {
		t.Errorf("NotCaptured = %v, Changed = %v, want none", res.NotCaptured, res.Changed)
	}
	e, err := Lookup(context.Background(), store, res.Tree, "run.sh")
	if err != nil || e.Mode != mode {
		t.Errorf("run.sh = %+v, %v; want mode %o", e, err, mode)
	}
	e, err = Lookup(context.Background(), store, res.Tree, "sub/deep/b.bin")
	if err != nil {
		t.Fatal(err)
	}
	if data, err := ReadFile(context.Background(), store, e); err != nil || string(data) != "\x00\xff\x00" {
		t.Errorf("content = %q, %v", data, err)
	}
	if _, err := Lookup(context.Background(), store, res.Tree, "a.txt/x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("look up below a file: %v, want fs.ErrNotExist", err)
	}
}

func TestScanReadsOnlyWhatChanged(t *testing.T) {
	needsTrust(t)
	root, store := t.TempDir(), newStore()
	write(t, root, map[string]string{"a/1": "one", "a/2": "two", "b/3": "three", "b/c/4": "four"})
	letTick()
	first := mustScan(t, store, root, nil, nil)
	again := mustScan(t, store, root, first.Index, nil)
	if again.Tree != first.Tree || again.Stats.Read != 0 || len(again.Changed) != 0 {
		t.Errorf("unchanged: tree %s, want %s; read %d, changed %v", again.Tree, first.Tree, again.Stats.Read, again.Changed)
	}
	if again.Index.root != first.Index.root {
		t.Error("unchanged: the index was built again")
	}
	write(t, root, map[string]string{"a/2": "TWO", "b/new": "5"})
	if err := os.RemoveAll(filepath.Join(root, "b/c")); err != nil {
		t.Fatal(err)
	}
	next := mustScan(t, store, root, first.Index, nil)
	wantList(t, "changed", changeList(next.Changed), "modify a/2", "remove b/c", "remove b/c/4", "add b/new")
	if next.Stats.Read != 2 {
		t.Errorf("read %d files, want 2", next.Stats.Read)
	}
	fresh := mustScan(t, newStore(), root, nil, nil)
	if fresh.Tree != next.Tree {
		t.Errorf("tree by index %s, afresh %s", next.Tree, fresh.Tree)
	}
	diff, err := Diff(context.Background(), store, first.Tree, next.Tree)
	if err != nil {
		t.Fatal(err)
	}
	wantList(t, "diff", changeList(diff), changeList(next.Changed)...)
}

func TestScanNoticesSameSizeEditWithRestoredTime(t *testing.T) {
	root, store := t.TempDir(), newStore()
	path := filepath.Join(root, "f")
	write(t, root, map[string]string{"f": "before"})
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	first := mustScan(t, store, root, nil, nil)
	write(t, root, map[string]string{"f": "after!"})
	if err := os.Chtimes(path, info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	next := mustScan(t, store, root, first.Index, nil)
	wantList(t, "changed", changeList(next.Changed), "modify f")
}

// An edit right after the scan, within the same tick of the file system's clock
// and of the same size, is the case that git calls racily clean.
func TestScanNoticesEditInTheSameTick(t *testing.T) {
	root, store := t.TempDir(), newStore()
	write(t, root, map[string]string{"f": "0000"})
	res := mustScan(t, store, root, nil, nil)
	for i := 1; i <= 50; i++ {
		content := strings.Repeat(string(rune('0'+i%10)), 4)
		write(t, root, map[string]string{"f": content})
		res = mustScan(t, store, root, res.Index, nil)
		e, err := Lookup(context.Background(), store, res.Tree, "f")
		if err != nil || e.ID != blob.Sum([]byte(content)) {
			t.Fatalf("round %d: %+v, %v; want content %q", i, e, err, content)
		}
	}
}

func TestScanModes(t *testing.T) {
	testenv.NeedModes(t)
	root, store := t.TempDir(), newStore()
	write(t, root, map[string]string{"f": "x", "d/g": "y"})
	first := mustScan(t, store, root, nil, nil)
	if err := os.Chmod(filepath.Join(root, "f"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(root, "d"), 0o700); err != nil {
		t.Fatal(err)
	}
	next := mustScan(t, store, root, first.Index, nil)
	wantList(t, "changed", changeList(next.Changed), "modify d", "modify f")
	if m := next.Changed[0].After.Mode; m != 0o700 {
		t.Errorf("mode of d = %o, want 700", m)
	}
	if next.Changed[1].Before.ID != next.Changed[1].After.ID {
		t.Error("content of f changed with its mode")
	}
}

func TestScanNamesWhatItLeavesOut(t *testing.T) {
	root, store := t.TempDir(), newStore()
	testenv.Mkfifo(t, filepath.Join(root, "fifo"), 0o644) // no Windows here, which cannot have some of the names
	write(t, root, map[string]string{
		"big": strings.Repeat("x", 101), "ok": strings.Repeat("x", 100),
		"git~1": "disguised", "CON": "device", "aux.c": "fine here",
		".git/config": "never", "sub/.git": "gitdir: elsewhere", "sub/.GIT/x": "never", "sub/f": "yes",
		StagePrefix + "1": "staged", ".gitmodules": "fine",
	})
	sock, err := net.Listen("unix", filepath.Join(root, "sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer sock.Close()
	res := mustScan(t, store, root, nil, &Options{MaxFile: 100})
	wantList(t, "tree", listTree(t, store, res.Tree), ".gitmodules file", "CON file", "aux.c file", "ok file", "sub dir", "sub/f file")
	wantList(t, "not captured", skippedList(res.NotCaptured),
		"big: too large", "fifo: special file", "git~1: name not allowed", "sock: special file",
		"sub/.GIT: git repository", "sub/.git: git repository")
	if res.NotCaptured[0].Size != 101 {
		t.Errorf("size of big = %d, want 101", res.NotCaptured[0].Size)
	}
}

func TestScanObeysIgnoreFilesAndKeepsTouched(t *testing.T) {
	root, store := t.TempDir(), newStore()
	write(t, root, map[string]string{
		".gitignore": "build/\n*.log\n!keep.log\n", ".stetignore": "!important.log\nsecret\n",
		".git/info/exclude": "local\n", "local": "x", "secret": "x", "important.log": "x",
		"keep.log": "x", "a.log": "x", "build/out/x.o": "x", "build/out/y.o": "x", "src/main.go": "x",
	})
	plain := mustScan(t, store, root, nil, nil)
	wantList(t, "tree", listTree(t, store, plain.Tree),
		".gitignore file", ".stetignore file", "important.log file", "keep.log file", "src dir", "src/main.go file")
	wantList(t, "not captured", skippedList(plain.NotCaptured), "a.log: ignored", "build: ignored", "local: ignored", "secret: ignored")

	touched := mustScan(t, store, root, plain.Index, &Options{Touched: []string{"build/out/x.o", filepath.Join(root, "a.log")}})
	wantList(t, "changed", changeList(touched.Changed), "add a.log", "add build", "add build/out", "add build/out/x.o")

	write(t, root, map[string]string{"build/out/x.o": "changed", "build/out/z.o": "new, nobody's"})
	later := mustScan(t, store, root, touched.Index, nil)
	wantList(t, "later", changeList(later.Changed), "modify build/out/x.o")
	bare := mustScan(t, store, root, NewIndex(later.Tree), nil)
	if bare.Tree != later.Tree {
		t.Errorf("touched files were forgotten with the index: %v", changeList(bare.Changed))
	}
	if err := os.Remove(filepath.Join(root, "build/out/x.o")); err != nil {
		t.Fatal(err)
	}
	gone := mustScan(t, store, root, later.Index, nil)
	wantList(t, "gone", changeList(gone.Changed), "remove build/out/x.o")

	all := mustScan(t, store, root, gone.Index, &Options{NoIgnore: true})
	if len(all.NotCaptured) > 0 || len(listTree(t, store, all.Tree)) != 13 {
		t.Errorf("without ignoring: %v, left out %v", listTree(t, store, all.Tree), all.NotCaptured)
	}
	back := mustScan(t, store, root, all.Index, nil)
	wantList(t, "captured once", changeList(back.Changed))
	wantList(t, "not captured again", skippedList(back.NotCaptured), "build: ignored", "build/out: ignored")
}

func TestScanTouchedDirectoryIsTakenWhole(t *testing.T) {
	root, store := t.TempDir(), newStore()
	write(t, root, map[string]string{".gitignore": "out\n*.o\n", "out/a.o": "1", "out/b/c": "2"})
	letTick()
	res := mustScan(t, store, root, nil, &Options{Touched: []string{"out"}})
	wantList(t, "tree", listTree(t, store, res.Tree), ".gitignore file", "out dir", "out/a.o file", "out/b dir", "out/b/c file")
	next := mustScan(t, store, root, res.Index, nil)
	if next.Tree != res.Tree || next.Index.root != res.Index.root {
		t.Errorf("changed without touched: %v", changeList(next.Changed))
	}
}

// A rule decides what is newly captured. What the tree has stays in it, by any
// index, and new names that the rule fits do not come in.
func TestRuleThatComesLater(t *testing.T) {
	root, store := t.TempDir(), newStore()
	write(t, root, map[string]string{"d/a.tmp": "1", "d/b": "2", "d/gen/x": "3", "d/gen/sub/y": "4", "d/.gitignore": ""})
	first := mustScan(t, store, root, nil, nil)
	write(t, root, map[string]string{"d/.gitignore": "*.tmp\ngen/\n", "d/new.tmp": "n", "d/gen/new": "n", "d/gen/sub/new": "n"})
	for name, index := range map[string]*Index{"index": first.Index, "saved index": restored(t, first.Index), "tree": NewIndex(first.Tree)} {
		for _, hints := range [][]string{nil, {"d/.gitignore"}} {
			next := mustScan(t, store, root, index, nil)
			if hints != nil {
				next = mustScanPaths(t, store, root, index, hints, nil)
			}
			wantList(t, name, changeList(next.Changed), "modify d/.gitignore")
		}
	}
	next := mustScan(t, store, root, first.Index, nil)
	write(t, root, map[string]string{"d/a.tmp": "changed", "d/gen/x": "changed"})
	if err := os.Remove(filepath.Join(root, "d/gen/sub/y")); err != nil {
		t.Fatal(err)
	}
	later := mustScan(t, store, root, next.Index, nil)
	wantList(t, "later", changeList(later.Changed), "modify d/a.tmp", "remove d/gen/sub/y", "modify d/gen/x")
	// Once gone, an ignored file is new when it is back.
	write(t, root, map[string]string{"d/gen/sub/y": "again"})
	back := mustScan(t, store, root, later.Index, nil)
	wantList(t, "back", changeList(back.Changed))
	if err := os.Remove(filepath.Join(root, "d/.gitignore")); err != nil {
		t.Fatal(err)
	}
	last := mustScan(t, store, root, back.Index, nil)
	wantList(t, "without the rule", changeList(last.Changed),
		"remove d/.gitignore", "add d/gen/new", "add d/gen/sub/new", "add d/gen/sub/y", "add d/new.tmp")
}

// An ignored directory in the place of a captured file is not half captured.
func TestIgnoredDirectoryInTheWay(t *testing.T) {
	root, store := t.TempDir(), newStore()
	write(t, root, map[string]string{"out": "file", ".gitignore": ""})
	first := mustScan(t, store, root, nil, nil)
	if err := os.Remove(filepath.Join(root, "out")); err != nil {
		t.Fatal(err)
	}
	write(t, root, map[string]string{"out/x": "1", ".gitignore": "out\n"})
	next := mustScan(t, store, root, first.Index, nil)
	wantList(t, "changed", changeList(next.Changed), "modify .gitignore", "remove out")
	wantList(t, "left out", skippedList(next.NotCaptured), "out: ignored")
}

// What an agent touched stays captured when the rule that ignores it goes and comes
// back, in one scan or in another.
func TestTouchedOutlastsTheRule(t *testing.T) {
	for _, reopen := range []bool{false, true} {
		root, store := t.TempDir(), newStore()
		rules := "out/\nwhole/\n*.log\n"
		write(t, root, map[string]string{
			".gitignore": rules, "out/made": "1", "out/other": "2", "whole/a": "3", "whole/sub/b": "4", "run.log": "5", "other.log": "6",
		})
		first := mustScan(t, store, root, nil, &Options{Touched: []string{"out/made", "whole", "run.log"}})
		write(t, root, map[string]string{".gitignore": ""})
		lifted := mustScan(t, store, root, first.Index, nil)
		wantList(t, "lifted", changeList(lifted.Changed), "modify .gitignore", "add other.log", "add out/other")
		index := mustScan(t, store, root, lifted.Index, nil).Index // nothing is lost on the way
		if reopen {
			path := filepath.Join(t.TempDir(), "index")
			if err := index.Save(path); err != nil {
				t.Fatal(err)
			}
			var err error
			if index, err = OpenIndex(path); err != nil {
				t.Fatal(err)
			}
			defer index.Close()
		}
		write(t, root, map[string]string{".gitignore": rules})
		back := mustScan(t, store, root, index, nil)
		wantList(t, "back", changeList(back.Changed), "modify .gitignore")
		write(t, root, map[string]string{"out/new": "7", "whole/new": "8", "new.log": "9"})
		last := mustScan(t, store, root, back.Index, nil)
		wantList(t, "what is new", changeList(last.Changed), "add whole/new")
	}
}

func TestScanRefusesBigPlaces(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	write(t, home, map[string]string{"proj/f": "x"})
	top, err := filepath.Abs("/") // on Windows that of a drive
	if err != nil {
		t.Fatal(err)
	}
	refused := map[string]string{
		top: top + " is the root of the file system", home: home + " is the home directory", home + "/proj/..": home + " is the home directory",
		filepath.Dir(home): filepath.Dir(home) + " contains the home directory",
	}
	if testenv.Links(t) {
		link := filepath.Join(t.TempDir(), "link")
		if err := os.Symlink(home, link); err != nil {
			t.Fatal(err)
		}
		refused[link] = link + " is the home directory"
	}
	for root, why := range refused {
		_, err := Scan(context.Background(), newStore(), root, nil, nil)
		if !errors.Is(err, ErrRootRefused) || !strings.HasSuffix(err.Error(), ": "+why) {
			t.Errorf("scan of %s: %v, want ErrRootRefused since %s", root, err, why)
		}
	}
	if err := RootAllowed(filepath.Join(home, "proj")); err != nil {
		t.Errorf("project below home: %v", err)
	}
	mustScan(t, newStore(), home, nil, &Options{Force: true})
	if _, err := Scan(context.Background(), newStore(), filepath.Join(home, "proj/f"), nil, nil); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("scan of a file: %v, want ENOTDIR", err)
	}
	if _, err := Scan(context.Background(), newStore(), filepath.Join(home, "none"), nil, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("scan of nothing: %v, want fs.ErrNotExist", err)
	}
}

func TestScanNamesWhatItCouldNotStore(t *testing.T) {
	for files, want := range map[int]string{1: "store 2 blobs: ", 0: "store 1 blob: "} { // with the directory
		root, store := t.TempDir(), newStore()
		for i := range files {
			write(t, root, map[string]string{string(rune('a' + i)): "x"})
		}
		store.fail = blob.ErrFull
		if _, err := Scan(context.Background(), store, root, nil, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d files: %v, want %q", files, err, want)
		}
	}
}

func TestScanFailsWithTheStore(t *testing.T) {
	root, store := t.TempDir(), newStore()
	for i := range 2000 {
		write(t, root, map[string]string{filepath.Join("d", strings.Repeat("n", 1+i%7), time.Duration(i).String()): "x" + time.Duration(i).String()})
	}
	before := openFDs(t)
	store.fail = blob.ErrFull
	if _, err := Scan(context.Background(), store, root, nil, nil); !errors.Is(err, blob.ErrFull) {
		t.Errorf("scan into a full store: %v, want ErrFull", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Scan(ctx, newStore(), root, nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("scan with a dead context: %v, want Canceled", err)
	}
	if after := openFDs(t); after != before {
		t.Errorf("%d open files, %d before", after, before)
	}
}

// openFDs returns the number of open files, or 0 where nothing lists them.
func openFDs(t *testing.T) int {
	t.Helper()
	if runtime.GOOS == "windows" {
		return 0
	}
	ents, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(ents)
}

func TestScanIgnoresIndexOfMissingTree(t *testing.T) {
	root := t.TempDir()
	write(t, root, map[string]string{"a/b": "x"})
	first := mustScan(t, newStore(), root, nil, nil)
	store := newStore()
	next := mustScan(t, store, root, first.Index, nil)
	if problems, err := Verify(context.Background(), store, next.Tree, true); err != nil || len(problems) > 0 {
		t.Errorf("tree in the new store: %v, %v", problems, err)
	}
}
