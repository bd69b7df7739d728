package swapdir

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stet-dev/stet/internal/osfile"
	"github.com/stet-dev/stet/internal/testenv"
)

const stageName = ".stage-test"

// versions are the contents of changes: a text, or the target of a link, by path.
type versions struct{ old, new map[string]string }

func (v versions) WriteFile(_ context.Context, path string, w io.Writer) error {
	_, err := io.WriteString(w, v.new[path])
	return err
}

func (v versions) LinkTarget(_ context.Context, path string) (string, error) {
	return v.new[path], nil
}

func (v versions) IsOld(path string, r io.Reader) (bool, error) {
	data, err := io.ReadAll(r)
	return string(data) == v.old[path], err
}

// object spells an object: "file 644 text", "dir 755", "link target". Empty is nothing.
func object(t testing.TB, text string) (*Object, string) {
	t.Helper()
	kind, rest, _ := strings.Cut(text, " ")
	var mode uint32
	switch kind {
	case "":
		return nil, ""
	case "link":
		return &Object{Kind: Symlink}, rest
	case "dir":
		_, err := fmt.Sscanf(rest, "%o", &mode)
		must(t, err)
		return &Object{Kind: Directory, Mode: mode}, ""
	}
	bits, content, _ := strings.Cut(rest, " ")
	_, err := fmt.Sscanf(bits, "%o", &mode)
	must(t, err)
	return &Object{Kind: File, Mode: mode}, content
}

// place makes an object by hand.
func place(t testing.TB, path, text string) {
	t.Helper()
	o, content := object(t, text)
	switch {
	case o == nil:
		return
	case o.Kind == Symlink:
		must(t, os.Symlink(content, path))
		return
	case o.Kind == Directory:
		must(t, os.Mkdir(path, 0o755))
	default:
		must(t, os.WriteFile(path, []byte(content), 0o644))
	}
	must(t, os.Chmod(path, os.FileMode(o.Mode)))
}

// kind is what becomes of a path.
type kind struct{ path, old, new string }

// everyKind is a change of everything that can change into everything else.
var everyKind = []kind{
	{"removed", "file 644 old", ""},
	{"made", "", "file 600 new"},
	{"changed", "file 644 old", "file 755 new"},
	{"mode", "file 644 same", "file 640 same"},
	{"link", "link old", "link new"},
	{"link-to-file", "link old", "file 644 new"},
	{"file-to-link", "file 644 old", "link new"},
	{"file-to-dir", "file 644 old", "dir 755"},
	{"file-to-dir/x", "", "file 644 new"},
	{"dir-to-file", "dir 755", "file 644 new"},
	{"dir-to-file/x", "file 644 old", ""},
	{"closed", "dir 755", "dir 500"},
	{"closed/x", "file 644 old", "file 644 new"},
	{"opened", "dir 500", "dir 755"},
	{"opened/x", "file 644 old", ""},
	{"gone", "dir 555", ""},
	{"gone/deep", "dir 755", ""},
	{"gone/deep/x", "file 644 old", ""},
	{"come", "", "dir 555"},
	{"come/deep", "", "dir 700"},
	{"come/deep/x", "", "file 644 new"},
	{"empty", "file 644 ", "file 644 new"},
}

// trial is a directory with the old objects of everyKind, and what it becomes.
type trial struct {
	t        testing.TB
	dir      string
	changes  []Change
	contents versions
	old, new map[string]string // snapshots
}

func newTrial(t testing.TB) *trial {
	t.Helper()
	r := &trial{t: t, dir: testenv.TempDir(t), contents: versions{old: map[string]string{}, new: map[string]string{}}}
	wanted := testenv.TempDir(t)
	kinds := everyKind
	if !testenv.Links(t) {
		kinds = slices.DeleteFunc(slices.Clone(kinds), func(e kind) bool { return strings.Contains(e.old+" "+e.new, "link ") })
	}
	for _, e := range kinds {
		c := Change{Path: e.path}
		c.Before, r.contents.old[e.path] = object(t, e.old)
		c.After, r.contents.new[e.path] = object(t, e.new)
		r.changes = append(r.changes, c)
		place(t, filepath.Join(r.dir, e.path), loosely(e.old))
		place(t, filepath.Join(wanted, e.path), loosely(e.new))
	}
	place(t, filepath.Join(r.dir, "other"), "file 644 other")
	place(t, filepath.Join(wanted, "other"), "file 644 other")
	for _, e := range kinds {
		exactly(t, filepath.Join(r.dir, e.path), e.old)
		exactly(t, filepath.Join(wanted, e.path), e.new)
	}
	r.old, r.new = testenv.Snapshot(t, r.dir), testenv.Snapshot(t, wanted)
	t.Cleanup(func() {
		for _, name := range []string{"closed", "opened", "gone", "come"} {
			_ = os.Chmod(filepath.Join(r.dir, name), 0o755) // for others than root to remove it
			_ = os.Chmod(filepath.Join(wanted, name), 0o755)
		}
	})
	return r
}

// loosely gives a directory the mode that lets others than root fill it, and exactly
// the one that is asked for.
func loosely(text string) string {
	if strings.HasPrefix(text, "dir ") {
		return "dir 755"
	}
	return text
}

func exactly(t testing.TB, path, text string) {
	t.Helper()
	if o, _ := object(t, text); o.isDir() {
		must(t, os.Chmod(path, os.FileMode(o.Mode)))
	}
}

func (r *trial) open(hook func(call, path string) error) *Root {
	r.t.Helper()
	root, err := Open(r.dir, &Options{Hook: hook})
	must(r.t, err)
	return root
}

// run does everything that a caller does between the beginning and the end of its
// journal, and returns the journal as it would be found after a crash: nil before it
// was written.
func (r *trial) run(root *Root) (journal []Step, err error) {
	swap, err := root.Begin(stageName, r.changes, r.contents)
	if err != nil {
		return nil, err
	}
	defer swap.Close()
	if err := swap.Stage(r.t.Context()); err != nil {
		return nil, err
	}
	journal = swap.Steps()
	if err := swap.Check(); err != nil {
		return journal, err
	}
	if err := swap.Run(r.t.Context(), nil); err != nil {
		return journal, err
	}
	return journal, swap.Undisturbed()
}

// recover does what a caller does after a crash.
func (r *trial) recover(root *Root, journal []Step) (left []string, err error) {
	if journal != nil {
		swap, err := root.Resume(stageName, journal)
		if err != nil {
			return nil, err
		}
		defer swap.Close()
		if left, err = swap.RollBack(); err != nil {
			return nil, err
		}
	}
	names, err := Stages(r.dir, stageName)
	for _, name := range names {
		err = errors.Join(err, root.RemoveStage(name))
	}
	return left, err
}

func (r *trial) expect(what string, want map[string]string) {
	r.t.Helper()
	if d := testenv.Differ(testenv.Snapshot(r.t, r.dir), want); len(d) > 0 {
		r.t.Fatalf("%s: the tree differs:\n%s", what, strings.Join(d, "\n"))
	}
}

// calls counts the changes of a directory and lets none happen from one on.
type calls struct {
	mu   sync.Mutex
	log  []string              // guarded by mu
	from func(call string) int // not negative from the one on that fails; nil for never
}

var errKilled = errors.New("killed")

func (c *calls) hook(call, path string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.log = append(c.log, call+" "+path)
	if c.from != nil && c.from(call) >= 0 {
		return errKilled
	}
	return nil
}

func TestEveryKindOfChange(t *testing.T) {
	r := newTrial(t)
	root := r.open(nil)
	defer root.Close()
	journal, err := r.run(root)
	must(t, err)
	left, err := r.recover(root, nil) // the journal is gone
	must(t, err)
	if len(left) > 0 {
		t.Errorf("left %q", left)
	}
	r.expect("after the change", r.new)
	if len(journal) < len(r.changes) {
		t.Errorf("%d steps for %d changes", len(journal), len(r.changes))
	}
}

// Killed before any of its calls or after them, a change is taken back from its journal; and
// so it is if the taking back is killed before any of its calls.
func TestKilledAtEveryCall(t *testing.T) {
	base, back := &calls{}, &calls{}
	r := newTrial(t)
	root := r.open(base.hook)
	journal, err := r.run(root)
	must(t, err)
	root.Close()
	root = r.open(back.hook)
	_, err = r.recover(root, journal)
	must(t, err)
	root.Close()
	points := 0
	for i, kill := range append(testenv.Points(base.log, 1, 1), testenv.Point{}) {
		if testenv.SlowFiles() { // one call of each recovery, and below each kind of one of them
			points++
			killAt(t, kill, testenv.Point{Number: 1 + i})
			continue
		}
		for again := 1; ; again++ {
			points++
			if ended := killAt(t, kill, testenv.Point{Number: again}); ended {
				break
			}
		}
	}
	want := 500
	if testenv.SlowFiles() {
		want = 15
		for _, again := range testenv.Points(back.log, 1, 1) {
			points++
			if ended := killAt(t, testenv.Point{}, again); ended {
				t.Errorf("the recovery was not killed at %s", again)
			}
		}
	}
	t.Logf("%d points", points)
	if points < want {
		t.Errorf("%d points, want at least %d", points, want)
	}
}

// killAt kills a change at a call, or after all of them, and the first recovery at another.
// It reports whether the recovery ended before that.
func killAt(t *testing.T, kill, again testenv.Point) (ended bool) {
	t.Helper()
	r := newTrial(t)
	root := r.open((&calls{from: kill.Watch()}).hook)
	journal, err := r.run(root)
	root.Close()
	if !errors.Is(err, errKilled) && (err != nil || kill != testenv.Point{}) {
		t.Fatalf("killed at %s: %v", kill, err)
	}
	root = r.open((&calls{from: again.Watch()}).hook)
	_, againErr := r.recover(root, journal)
	root.Close()
	root = r.open(nil)
	defer root.Close()
	left, recoverErr := r.recover(root, journal)
	if recoverErr != nil || len(left) > 0 {
		t.Fatalf("killed at %s (%v), recovery at %s (%v): left %q, %v", kill, err, again, againErr, left, recoverErr)
	}
	r.expect(fmt.Sprintf("killed at %s (%v), recovery at %s (%v)", kill, err, again, againErr), r.old)
	return againErr == nil
}

// An error of any call leaves what RollBack of the same Swap puts back.
func TestErrorAtEveryCall(t *testing.T) {
	base := &calls{}
	r := newTrial(t)
	root := r.open(base.hook)
	_, err := r.run(root)
	must(t, err)
	root.Close()
	for _, point := range testenv.Points(base.log, 1, 1) {
		r := newTrial(t)
		var mu sync.Mutex
		watch := point.Watch()
		root := r.open(func(call, _ string) error {
			mu.Lock()
			defer mu.Unlock()
			if watch(call) == 0 {
				return syscall.EIO
			}
			return nil
		})
		journal, err := r.run(root)
		if !errors.Is(err, syscall.EIO) {
			t.Fatalf("an error at %s: %v", point, err)
		}
		left, recoverErr := r.recover(root, journal)
		if recoverErr != nil || len(left) > 0 {
			t.Fatalf("an error at %s (%v): left %q, %v", point, err, left, recoverErr)
		}
		r.expect(fmt.Sprintf("an error at %s (%v)", point, err), r.old)
		root.Close()
	}
}

// Paths that others changed after the steps were taken stay, and are named; without the
// staging directory the paths are named that show to have changed.
func TestWhatIsLeft(t *testing.T) {
	r := newTrial(t)
	root := r.open(nil)
	defer root.Close()
	journal, err := r.run(root)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(r.dir, "changed"), []byte("mine"), 0o644))
	must(t, os.WriteFile(filepath.Join(r.dir, "removed"), []byte("mine"), 0o644))
	left, err := r.recover(root, journal)
	must(t, err)
	slices.Sort(left)
	if want := []string{"changed", "removed"}; !slices.Equal(left, want) {
		t.Errorf("left %q, want %q", left, want)
	}

	r = newTrial(t)
	root = r.open(nil)
	defer root.Close()
	journal, err = r.run(root)
	must(t, err)
	must(t, root.RemoveStage(stageName))
	left, err = r.recover(root, journal)
	must(t, err)
	named := []string{"changed", "removed", "made", "come/deep/x"}
	if runtime.GOOS != "windows" { // which has no modes
		named = append(named, "closed")
	}
	for _, path := range named {
		if !slices.Contains(left, path) {
			t.Errorf("%s is not named: %q", path, left)
		}
	}
	r.expect("nothing could be put back", r.new)
}

// Whatever is written to a path between Check and the end of Run, or to what was
// replaced before Undisturbed, ends the change. On Windows a program can keep a file to
// itself: that is tried again, and then ends the change, too.
func TestChangedMeanwhile(t *testing.T) {
	for name, when := range map[string]string{"before its step": "swap changed", "after its step": "install file-to-dir"} {
		t.Run(name, func(t *testing.T) {
			r := newTrial(t)
			held, err := os.OpenFile(filepath.Join(r.dir, "changed"), os.O_WRONLY|os.O_APPEND, 0)
			must(t, err)
			defer held.Close()
			wrote := false
			root := r.open(func(call, path string) error {
				if call+" "+path == when && !wrote {
					wrote = true
					_, err := held.WriteString(" more")
					return err
				}
				return nil
			})
			defer root.Close()
			journal, err := r.run(root)
			want, named := ErrChanged, `"changed"`
			if runtime.GOOS == "windows" {
				want, named = osfile.ErrInUse, "changed"
			}
			if !errors.Is(err, want) || !strings.Contains(err.Error(), named) {
				t.Fatalf("error %v, want %v", err, want)
			}
			left, err := r.recover(root, journal)
			if err != nil || len(left) > 0 {
				t.Fatalf("left %q, %v", left, err)
			}
			if wrote {
				r.old["changed"] += " more"
			}
			r.expect("taken back", r.old)
		})
	}
}

func TestCheckRefusesWhatChanged(t *testing.T) {
	for what, change := range map[string]func(dir string) error{
		"disappeared": func(dir string) error { return os.Remove(filepath.Join(dir, "changed")) },
		"appeared":    func(dir string) error { return os.WriteFile(filepath.Join(dir, "made"), nil, 0o644) },
	} {
		r := newTrial(t)
		root := r.open(nil)
		swap, err := root.Begin(stageName, r.changes, r.contents)
		must(t, err)
		must(t, swap.Stage(t.Context()))
		must(t, change(r.dir))
		if err := swap.Check(); !errors.Is(err, ErrChanged) || !strings.HasSuffix(err.Error(), what) {
			t.Errorf("error %v, want that a path %s", err, what)
		}
		must(t, swap.Remove())
		root.Close()
	}
}

func TestTooSlow(t *testing.T) {
	r := newTrial(t)
	root := r.open(nil)
	defer root.Close()
	swap, err := root.Begin(stageName, r.changes, r.contents)
	must(t, err)
	must(t, swap.Stage(t.Context()))
	must(t, swap.Check())
	never := func(int) time.Duration { return -time.Second }
	if err := swap.Run(t.Context(), &RunOptions{Timeout: never}); !errors.Is(err, ErrTimeout) {
		t.Errorf("error %v, want ErrTimeout", err)
	}
	_, err = swap.RollBack()
	must(t, err)
	must(t, swap.Remove())
	r.expect("taken back", r.old)
}

func TestProgress(t *testing.T) {
	r := newTrial(t)
	root := r.open(nil)
	defer root.Close()
	swap, err := root.Begin(stageName, r.changes, r.contents)
	must(t, err)
	must(t, swap.Stage(t.Context()))
	must(t, swap.Check())
	last, all := 0, len(swap.Steps())
	must(t, swap.Run(t.Context(), &RunOptions{Progress: func(done, of int) {
		if done != last+1 || of != all {
			t.Errorf("%d of %d after %d of %d", done, of, last, all)
		}
		last = done
	}}))
	if last != all {
		t.Errorf("%d of %d steps were reported", last, all)
	}
	must(t, swap.Remove())
	r.expect("after the change", r.new)
}

// A journal may be in hostile hands: no path of it may lead out of the directory.
func TestPathsThatLeadOut(t *testing.T) {
	root, err := Open(testenv.TempDir(t), nil)
	must(t, err)
	defer root.Close()
	for _, path := range []string{"", "/", "/etc", "..", "../x", "a/../../x", "a//b", "a/", ".", "./a", "a\x00b"} {
		if _, err := root.Begin(stageName, []Change{{Path: path}}, nil); !errors.Is(err, ErrBadPath) {
			t.Errorf("Begin %q: %v", path, err)
		}
		if _, err := root.Resume(stageName, []Step{{Kind: Remove, Path: path}}); !errors.Is(err, ErrBadPath) {
			t.Errorf("Resume %q: %v", path, err)
		}
		if err := root.RemoveStage(path); !errors.Is(err, ErrBadPath) {
			t.Errorf("RemoveStage %q: %v", path, err)
		}
	}
	if err := root.RemoveStage("a/b"); !errors.Is(err, ErrBadPath) {
		t.Errorf("RemoveStage of a path: %v", err)
	}
}
