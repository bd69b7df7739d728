package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stet-dev/stet/internal/testenv"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/workspace"
)

// faults stands between a rewind and everything that it changes: the disk, by
// the hook, and the rows, as a kv.Store.
type faults struct {
	kv.Store
	noSyncfs bool // as a kernel, or a sandbox, that does not have it

	mu    sync.Mutex
	calls int
	log   []string
	// fail is asked before every change; an error takes its place.
	fail func(n int, call string) error
	// lost is asked after every commit: an error hides that it took place.
	lost func(n int) error
}

func (x *faults) about(call string) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.calls++
	x.log = append(x.log, call)
	if x.fail == nil {
		return x.calls, nil
	}
	return x.calls, x.fail(x.calls, call)
}

func (x *faults) hook(call, path string) error {
	if x.noSyncfs && call == "syncfs" {
		return syscall.ENOSYS
	}
	_, err := x.about(call + " " + path)
	return err
}

func (x *faults) Commit(ctx context.Context, b *kv.Batch) error {
	n, err := x.about("commit")
	if err != nil {
		return err
	}
	if err := x.Store.Commit(ctx, b); err != nil {
		return err
	}
	if x.lost != nil {
		return x.lost(n)
	}
	return nil
}

// everyKind is a workspace in which a rewind has to do everything that a rewind
// can do. It returns the tree to go back to and the present one.
func everyKind(t testing.TB) (f *fixture, target *Record, old, present map[string]string) {
	f = newFixture(t)
	for i := range 20 {
		f.write(fmt.Sprintf("src/pkg%d/file%d.go", i%4, i), strings.Repeat(fmt.Sprintln("line", i), i+1))
	}
	f.write("script.sh", "#!/bin/sh\n", "becomes-dir", "file\n", "removed/deep/a", "a", "removed/deep/b", "b", "locked/x", "x\n",
		".git/HEAD", "ref: refs/heads/main\n", "untouched/u", "u\n", "mine.txt", "first\n", "empty-file", "")
	must(t, os.Mkdir(f.path("empty-dir"), 0o750))
	must(t, os.Symlink("script.sh", f.path("link")))
	must(t, os.Symlink("nowhere", f.path("becomes-file")))
	must(t, os.Mkdir(f.path("dir-becomes-link"), 0o755))
	f.write("dir-becomes-link/inside", "in\n")
	must(t, os.Chmod(f.path("locked"), 0o500))
	target = f.before("agent", 1)
	old = testenv.Snapshot(t, f.dir)

	for i := range 20 {
		f.write(fmt.Sprintf("src/pkg%d/file%d.go", i%4, i), fmt.Sprintln("rewritten", i))
	}
	for i := range 8 {
		f.write(fmt.Sprintf("gen/out%d/made%d", i%3, i), "made\n")
	}
	must(t, os.Chmod(f.path("script.sh"), 0o755))
	f.remove("becomes-dir", "removed", "link", "becomes-file", "dir-becomes-link", "empty-dir", "empty-file")
	f.write("becomes-dir/now", "dir\n", "becomes-file", "file\n")
	must(t, os.Symlink("src", f.path("dir-becomes-link")))
	must(t, os.Symlink("src/pkg0", f.path("link")))
	must(t, os.Chmod(f.path("locked"), 0o555))
	must(t, os.Chmod(f.path("gen/out0"), 0o555))
	t.Cleanup(func() {
		for _, name := range []string{"locked", "gen/out0"} {
			_ = os.Chmod(f.path(name), 0o755) // for others than root to remove it
		}
	})
	f.after("agent", 1)
	f.write("mine.txt", "edited by the user\n")
	old["mine.txt"] = "-rw-r--r-- edited by the user\n" // not the agent's, so kept
	return f, target, old, testenv.Snapshot(t, f.dir)
}

// arm puts faults under the fixture's workspace.
func (f *fixture) arm(x *faults) {
	x.Store = f.rows
	f.opts.hook = x.hook
	w, err := New(f.blobs, x, &f.opts).Open(f.t.Context(), f.dir)
	must(f.t, err)
	f.w = w
	f.opts.hook = nil
}

// countCalls returns the changes that the rewind of everyKind makes.
func countCalls(t *testing.T, noSyncfs bool) *faults {
	t.Helper()
	f, target, old, _ := everyKind(t)
	x := &faults{noSyncfs: noSyncfs}
	f.arm(x)
	f.rewind(RewindRequest{To: target.ID})
	f.expect(old)
	return x
}

// countWays returns the changes with syncfs and without; only the latter where the system
// has none.
func countWays(t *testing.T) []*faults {
	t.Helper()
	without, with := countCalls(t, true), countCalls(t, false)
	if !strings.Contains(strings.Join(with.log, "\n"), "syncfs") {
		if runtime.GOOS == "linux" {
			t.Error("too few files for what many files need")
		}
		return []*faults{without}
	}
	return []*faults{without, with}
}

var errKilled = errors.New("killed")

// Killed before any of its changes, a rewind leaves what the next Open turns into
// exactly the tree before; killed after the last commit, exactly the one after.
func TestKilledAtEveryCall(t *testing.T) {
	points, ways := 0, countWays(t)
	for i, base := range ways {
		points += base.calls
		every := testenv.Sizes(4, 1, 1)
		first := 1 + i*every/2 // not the same calls
		for _, p := range testenv.Points(base.log, first, every) {
			killAt(t, p, base.noSyncfs, false)
		}
		for n, call := range base.log {
			if call == "commit" {
				points++
				killAt(t, testenv.Point{Number: n + 1}, base.noSyncfs, true)
			}
		}
	}
	t.Logf("%d points", points)
	if want := 125 * len(ways); points < want {
		t.Errorf("%d points, want at least %d", points, want)
	}
}

func killAt(t *testing.T, p testenv.Point, noSyncfs, afterwards bool) {
	t.Helper()
	f, target, old, present := everyKind(t)
	// A dead process changes nothing more.
	where, n := p.Watch(), 0
	x := &faults{noSyncfs: noSyncfs, fail: func(at int, call string) error {
		w := where(call)
		if w == 0 {
			n = at
		}
		if w > 0 || w == 0 && !afterwards {
			return errKilled
		}
		return nil
	}}
	if afterwards {
		x.lost = func(at int) error {
			if at == n {
				return errKilled
			}
			return nil
		}
	}
	f.arm(x)
	done, err := f.w.Rewind(t.Context(), RewindRequest{To: target.ID}, "")
	if n == 0 {
		t.Fatalf("killed at %s: there was no such call: %v", p, err)
	}
	wantNew := err == nil
	if err == nil && done.CleanupError == nil && n < x.calls {
		t.Fatalf("killed at %d (%s): no error", n, x.log[n-1])
	}
	f.w = nil
	f.reopen()
	got := testenv.Snapshot(t, f.dir)
	isOld, isNew := len(testenv.Differ(got, present)) == 0, len(testenv.Differ(got, old)) == 0
	if !isOld && !isNew {
		t.Fatalf("killed at %d (%s): neither before nor after:\n%s", n, x.log[n-1], strings.Join(testenv.Differ(got, present), "\n"))
	}
	if wantNew && !isNew {
		t.Fatalf("killed at %d (%s): reported done, and is not", n, x.log[n-1])
	}
	if isOld && errors.Is(err, ErrInterrupted) && f.w.Recovered() == nil && journaledBy(x.log[:n-1]) {
		t.Errorf("killed at %d (%s): the next Open does not tell", n, x.log[n-1])
	}
	if isOld { // and it still works
		f.rewind(RewindRequest{To: target.ID})
		f.expect(old)
	}
}

// journaledBy reports whether the journal was written among the given calls.
func journaledBy(log []string) bool {
	for _, call := range log {
		if call == "commit" {
			return true
		}
	}
	return false
}

// One failing change means a failed rewind with everything as before. Only if
// writing out the whole file system fails, each file is asked instead.
func TestErrorAtEveryCall(t *testing.T) {
	causes := []error{syscall.EIO, syscall.ENOSPC, syscall.EROFS}
	for _, base := range countWays(t) {
		if testenv.SlowFiles() { // each call has one of the causes
			for i, p := range testenv.Points(base.log, 1, 4) {
				failAt(t, p, base.noSyncfs, causes[i%len(causes)])
			}
			continue
		}
		for i, cause := range causes {
			first, every := i+1, testenv.Sizes(4*len(causes), len(causes), 1)
			if testenv.Long() {
				first = 1
			}
			for _, p := range testenv.Points(base.log, first, every) {
				failAt(t, p, base.noSyncfs, cause)
			}
		}
	}
}

func failAt(t *testing.T, p testenv.Point, noSyncfs bool, cause error) {
	t.Helper()
	f, target, old, present := everyKind(t)
	where, n := p.Watch(), 0
	x := &faults{noSyncfs: noSyncfs, fail: func(at int, call string) error {
		if where(call) == 0 {
			n = at
			return cause
		}
		return nil
	}}
	f.arm(x)
	done, err := f.w.Rewind(t.Context(), RewindRequest{To: target.ID}, "")
	if n == 0 {
		t.Fatalf("%v at %s: there was no such call: %v", cause, p, err)
	}
	if err == nil {
		if done.CleanupError == nil && !strings.HasPrefix(x.log[n-1], "syncfs") {
			t.Fatalf("%v at %d (%s) went unnoticed", cause, n, x.log[n-1])
		}
		f.w = nil
		f.reopen()
		f.expect(old)
		return
	}
	if !errors.Is(err, cause) {
		t.Fatalf("%v at %d (%s): error %v", cause, n, x.log[n-1], err)
	}
	f.w = nil
	f.reopen()
	if d := testenv.Differ(testenv.Snapshot(t, f.dir), present); len(d) > 0 {
		t.Fatalf("%v at %d (%s): not as before:\n%s", cause, n, x.log[n-1], strings.Join(d, "\n"))
	}
}

// Everything can be put back on a disk that stays full.
func TestDiskStaysFull(t *testing.T) {
	base := countCalls(t, false)
	grows := func(call string) bool {
		verb, _, _ := strings.Cut(call, " ")
		return verb == "create" || verb == "write" || verb == "mkdir" || verb == "symlink"
	}
	for _, p := range testenv.Points(base.log, 1, testenv.Sizes(9, 3, 1)) {
		if p.Number > 0 && !grows(base.log[p.Number-1]) || p.Kind != "" && !grows(p.Kind) {
			continue
		}
		f, target, _, present := everyKind(t)
		var hit atomic.Bool // files are staged in parallel: the calls come in another order each time
		where := p.Watch()
		x := &faults{fail: func(_ int, call string) error {
			if where(call) >= 0 && grows(call) {
				hit.Store(true)
				return syscall.ENOSPC
			}
			return nil
		}}
		f.arm(x)
		_, err := f.w.Rewind(t.Context(), RewindRequest{To: target.ID}, "")
		if err == nil && !hit.Load() {
			continue
		}
		if !errors.Is(err, syscall.ENOSPC) || errors.Is(err, ErrInterrupted) {
			t.Fatalf("full from %s on: %v", p, err)
		}
		if !errors.Is(err, ErrRolledBack) && !strings.Contains(err.Error(), "nothing was changed") {
			t.Errorf("full from %s on: %v, want it to say that nothing was changed", p, err)
		}
		f.expect(present)
	}
}

// The recovery of a killed rewind can be killed too, at any of its changes.
func TestKilledWhileRecovering(t *testing.T) {
	base := countCalls(t, false)
	first := base.calls * 3 / 4 // most steps taken
	recoverTo := func(p testenv.Point, andRewind bool) *faults {
		t.Helper()
		f, target, old, present := everyKind(t)
		f.arm(&faults{fail: func(at int, _ string) error {
			if at >= first {
				return errKilled
			}
			return nil
		}})
		if _, err := f.w.Rewind(t.Context(), RewindRequest{To: target.ID}, ""); !errors.Is(err, ErrInterrupted) {
			t.Fatalf("killed rewind: %v, want ErrInterrupted", err)
		}
		where, killed := p.Watch(), false
		x := &faults{Store: f.rows, fail: func(_ int, call string) error {
			if where(call) >= 0 {
				killed = true
				return errKilled
			}
			return nil
		}}
		f.opts.hook = x.hook
		_, err := New(f.blobs, x, &f.opts).Open(t.Context(), f.dir)
		if never := p == (testenv.Point{}); killed == never || err != nil && never {
			t.Errorf("recovery to be killed at %s: killed %v, %v", p, killed, err)
		}
		f.opts.hook, f.w = nil, nil
		f.reopen()
		f.expect(present)
		if andRewind {
			f.rewind(RewindRequest{To: target.ID})
			f.expect(old)
		}
		return x
	}
	points := testenv.Points(recoverTo(testenv.Point{}, true).log, 1, 1)
	for i, p := range points {
		recoverTo(p, i%8 == 7)
	}
	t.Logf("%d points", len(points))
}

// killedAfterSteps is a workspace whose rewind was killed after its last step: a, b,
// c and d/made are as in the target.
func killedAfterSteps(t *testing.T) *fixture {
	t.Helper()
	f := newFixture(t)
	f.write("a", "old a\n", "b", "old b\n", "c", "old c\n")
	target := f.before("agent", 1)
	f.write("a", "new a\n", "b", "new b\n", "d/made", "made\n")
	f.remove("c")
	f.after("agent", 1)
	x := &faults{}
	steps := 0
	x.fail = func(_ int, call string) error {
		verb, _, _ := strings.Cut(call, " ")
		if verb == "swap" || verb == "install" || verb == "remove" {
			steps++
		} else if steps > 0 {
			steps = 1 << 20
		}
		if steps >= 1<<20 {
			return errKilled
		}
		return nil
	}
	f.arm(x)
	if _, err := f.w.Rewind(t.Context(), RewindRequest{To: target.ID}, ""); !errors.Is(err, ErrInterrupted) {
		t.Fatalf("killed rewind: %v, want ErrInterrupted", err)
	}
	f.w = nil
	return f
}

// The staged files are removed before recovery: what cannot be put back
// is named.
func TestSettlingWithoutStagedFiles(t *testing.T) {
	f := killedAfterSteps(t)
	stages, err := filepath.Glob(f.path(workspace.StagePrefix + "*"))
	if err != nil || len(stages) != 1 {
		t.Fatalf("staged: %v, %v", stages, err)
	}
	must(t, os.RemoveAll(stages[0]))
	f.write("a", "the user's a\n")
	f.reopen()
	r := f.w.Recovered()
	if r == nil {
		t.Fatal("nothing was recovered")
	}
	same(t, "left", r.Left, []string{"b", "c", "d", "d/made"})
}

// Staged files that cannot be removed keep nobody from working, and the recovery is
// told all the same.
func TestSettlingCannotCleanUp(t *testing.T) {
	f := killedAfterSteps(t)
	f.opts.hook = func(call, _ string) error {
		if call == "cleanup" {
			return syscall.ENOTEMPTY
		}
		return nil
	}
	for i := range 2 {
		f.reopen()
		if r := f.w.Recovered(); (r != nil) != (i == 0) {
			t.Errorf("opened %d times: recovered %v", i+1, r)
		}
		if err := f.w.CleanupError(); !errors.Is(err, syscall.ENOTEMPTY) {
			t.Errorf("opened %d times: cleanup %v", i+1, err)
		}
		f.save(Request{})
	}
	f.opts.hook = nil
	f.reopen()
	stages, err := filepath.Glob(f.path(workspace.StagePrefix + "*"))
	if err != nil || len(stages) > 0 || f.w.CleanupError() != nil {
		t.Errorf("staged: %v, %v; cleanup %v", stages, err, f.w.CleanupError())
	}
}

// What others do between a crash and the recovery is not undone.
func TestRecoveryLeavesLaterWork(t *testing.T) {
	f := killedAfterSteps(t)
	f.write("a", "the user's a\n", "c", "the user's c\n")
	f.reopen()
	r := f.w.Recovered()
	if r == nil {
		t.Fatal("nothing was recovered")
	}
	same(t, "left", r.Left, []string{"c", "a"})
	for name, want := range map[string]string{"a": "the user's a\n", "b": "new b\n", "c": "the user's c\n", "d/made": "made\n"} {
		if got, err := os.ReadFile(f.path(name)); err != nil || string(got) != want {
			t.Errorf("%s is %q, %v; want %q", name, got, err, want)
		}
	}
	if err := f.w.Close(); err != nil {
		t.Error(err)
	}
	f.w = nil
	f.reopen()
	if f.w.Recovered() != nil {
		t.Error("the recovery is told twice")
	}
}
