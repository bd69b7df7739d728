package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/internal/testenv"
	"github.com/stet-dev/stet/kv/memkv"
	"github.com/stet-dev/stet/workspace"
)

// newFoldingFixture is a workspace on a file system that folds names.
func newFoldingFixture(t testing.TB) *fixture {
	t.Helper()
	blobs := memblob.New()
	f := &fixture{t: t, dir: testenv.FoldingDir(t), blobs: blob.Checked(blobs), rows: memkv.New(blobs), memory: blobs}
	f.opts.IndexDir = testenv.TempDir(t)
	f.reopen()
	return f
}

// files lists the workspace with the spelling of its directories, and contents.
func (f *fixture) files() []string {
	f.t.Helper()
	var out []string
	err := filepath.WalkDir(f.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == f.dir {
			return err
		}
		name, _ := filepath.Rel(f.dir, path)
		if name = filepath.ToSlash(name); d.IsDir() {
			out = append(out, name+"/")
			return nil
		}
		data, err := os.ReadFile(path)
		out = append(out, name+"="+string(data))
		return err
	})
	must(f.t, err)
	slices.Sort(out)
	return out
}

// exchange makes a request that goes to a tree from elsewhere.
func (f *fixture) exchange(files map[string]workspace.Entry, contents map[string]string) RewindRequest {
	f.t.Helper()
	last := f.save(Request{})
	to := map[string]*workspace.Entry{}
	req := RewindRequest{Exchange: &Exchange{Last: last.Tree}}
	for path, e := range files {
		b := blob.New([]byte(contents[path]))
		must(f.t, f.blobs.Put(f.t.Context(), b))
		e.ID, e.Size = b.ID, int64(len(contents[path]))
		to[path] = &e
		req.Exchange.Paths = append(req.Exchange.Paths, path)
	}
	tree, err := workspace.Edit(f.t.Context(), f.blobs, last.Tree, to)
	must(f.t, err)
	req.Exchange.To = tree
	return req
}

// A file and a directory that only changed the case of their names come back under the
// names that they had, and go again.
func TestRenamesOfCaseOnly(t *testing.T) {
	f := newFoldingFixture(t)
	f.write("Readme", "one", "Src/a", "a", "Src/Deep/b", "b", "stays", "s")
	first := f.save(Request{})
	before := f.files()
	for _, name := range [][2]string{{"Readme", "README"}, {"Src/Deep", "Src/deep"}, {"Src", "src"}} {
		must(t, os.Rename(f.path(name[0]), f.path(name[1]+".tmp")))
		must(t, os.Rename(f.path(name[1]+".tmp"), f.path(name[1])))
	}
	f.write("src/a", "changed")
	f.save(Request{})
	renamed := f.files()
	same(t, "renamed", renamed, []string{"README=one", "src/", "src/a=changed", "src/deep/", "src/deep/b=b", "stays=s"})

	f.rewind(RewindRequest{To: first.ID})
	same(t, "after the rewind", f.files(), before)
	must(t, undo(f))
	same(t, "after the undo", f.files(), renamed)
	f.reopen()
	_, err := f.w.Redo(t.Context(), nil)
	must(t, err)
	same(t, "after the redo", f.files(), before)
	if rec := f.save(Request{}); rec.Tree != first.Tree {
		t.Error("the tree is not that of the first checkpoint")
	}
}

// A rename of case only that fails at any call leaves the names as they were.
func TestFailedRenamesOfCaseOnly(t *testing.T) {
	f := newFoldingFixture(t)
	f.write("Readme", "one", "Src/a", "a")
	first := f.save(Request{})
	f.remove("Readme", "Src")
	f.write("README", "one", "src/a", "a")
	f.save(Request{})
	present := f.files()
	x := &faults{Store: f.rows}
	f.opts.hook = x.hook
	for n := 1; n < 200; n++ {
		x.calls, x.log = 0, nil
		failed := errors.New("injected")
		x.fail = func(call int, _ string) error {
			if call == n {
				return failed
			}
			return nil
		}
		f.reopen()
		_, err := f.w.Rewind(t.Context(), RewindRequest{To: first.ID}, "")
		if err == nil {
			break
		}
		if !errors.Is(err, failed) {
			t.Fatal(err)
		}
		x.fail = nil
		f.reopen()
		same(t, fmt.Sprint("after a failure at call ", n, ": ", err), f.files(), present)
	}
	x.fail = nil
	f.reopen() // removes what was staged, if that failed
	same(t, "after the rewind", f.files(), []string{"Readme=one", "Src/", "Src/a=a"})
}

// A path exists only if its directory lists that spelling, also where a scan is told where
// to look.
func TestPathsAsTheyAreSpelled(t *testing.T) {
	f := newFoldingFixture(t)
	f.write(".gitignore", "out/\n", "Readme", "one", "out/Made", "m")
	f.save(Request{Touched: []string{"out/Made"}})
	f.remove("Readme", "out/Made")
	f.write("README", "two", "out/MADE", "M")
	for _, req := range []Request{{Paths: []string{"Readme"}}, {Paths: []string{"readme"}, Touched: []string{"out/MADE"}}, {}} {
		rec := f.save(req)
		var got []string
		must(t, workspace.Walk(t.Context(), f.blobs, rec.Tree, func(path string, e workspace.Entry) error {
			if e.Kind == workspace.File {
				got = append(got, path)
			}
			return nil
		}))
		want := []string{".gitignore", "README", "out/MADE"}
		if len(req.Touched) == 0 && req.Paths != nil {
			want[2] = "out/Made" // was not looked at
		}
		same(t, "tree", got, want)
	}
}

// Two names of a checkpoint that are one name here refuse the rewind before anything
// happens, and are both named.
func TestNamesThatAreOne(t *testing.T) {
	f := newFoldingFixture(t)
	f.write("keep", "k", "Stays/x", "x")
	file := workspace.Entry{Kind: workspace.File, Mode: 0o644}
	contents := map[string]string{"Makefile": "1", "makefile": "2", "new": "n", "stays/y": "y", "KEEP": "K"}
	for _, c := range []struct {
		paths []string
		want  string // in the error; "" for none
	}{
		{[]string{"Makefile", "makefile", "new"}, `"Makefile" and "makefile"`},
		{[]string{"KEEP", "new"}, `"keep" and "KEEP"`},
		{[]string{"Makefile", "new"}, ""},
	} {
		files := map[string]workspace.Entry{}
		for _, path := range c.paths {
			files[path] = file
		}
		req := f.exchange(files, contents)
		before := f.files()
		_, planErr := f.w.Plan(t.Context(), req)
		_, err := f.w.Rewind(t.Context(), req, "")
		if c.want == "" {
			must(t, errors.Join(planErr, err))
			continue
		}
		for _, err := range []error{planErr, err} {
			if !errors.Is(err, ErrSameName) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v: %v, want ErrSameName for %s", c.paths, err, c.want)
			}
		}
		same(t, "files after a refusal", f.files(), before)
	}
	same(t, "files", f.files(), []string{"Makefile=1", "Stays/", "Stays/x=x", "keep=k", "new=n"})
}

// What the file system cannot have is left alone and named, and the rest comes back.
func TestWhatAFileSystemCannotHave(t *testing.T) {
	f := newFoldingFixture(t)
	f.write("keep", "k")
	traits := workspace.TraitsOf(f.dir)
	files := map[string]workspace.Entry{
		"run.sh": {Kind: workspace.File, Mode: 0o755}, "secret": {Kind: workspace.File, Mode: 0o600},
		"a?b": {Kind: workspace.File, Mode: 0o644}, "link": {Kind: workspace.Symlink},
	}
	req := f.exchange(files, map[string]string{"run.sh": "#!", "secret": "s", "a?b": "q", "link": "run.sh"})
	plan := f.plan(req)
	var left []string
	for _, a := range plan.Left() {
		left = append(left, a.Path+" "+string(a.Why))
	}
	var want []string
	if runtime.GOOS == "windows" || !traits.Modes { // APFS can have the name
		want = append(want, "a?b impossible")
	}
	if !traits.Links {
		want = append(want, "link impossible")
	}
	same(t, "left", left, want)
	done := f.rewind(plan.Request())
	for path, e := range files {
		if slices.Contains(want, path+" impossible") {
			continue
		}
		got, err := lookup(t.Context(), f.blobs, done.Record.Tree, path)
		must(t, err)
		if got == nil || got.Mode != e.Mode {
			t.Errorf("%s is %+v, want mode %o", path, got, e.Mode)
		}
	}
	// The modes stay in the history, whatever the file system says about them.
	f.reopen()
	if rec := f.save(Request{}); rec.Tree != done.Record.Tree {
		t.Error("a checkpoint right after the rewind differs from it")
	}
	must(t, undo(f))
	same(t, "after the undo", f.files(), []string{"keep=k"})
	_, err := f.w.Redo(t.Context(), nil)
	must(t, err)
	f.write("run.sh", "#! changed")
	rec := f.save(Request{})
	got, err := lookup(t.Context(), f.blobs, rec.Tree, "run.sh")
	must(t, err)
	if got.Mode != 0o755 {
		t.Errorf("a changed file has mode %o, want 755", got.Mode)
	}
}
