//go:build linux || darwin

package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stet-dev/stet/internal/testenv"
	"github.com/stet-dev/stet/workspace"
)

// inodes tells for every path below a directory which file it is and when it was
// last changed: two equal answers mean that nothing was even rewritten.
func inodes(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	must(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return err
		}
		out[path] = fmt.Sprintf("%d %o %d:%d", st.Ino, st.Mode, st.Rdev, st.Ctim.Nano())
		return nil
	}))
	return out
}

// Sockets, FIFOs and devices hang nobody, are named as not captured, and are the
// same ones after a rewind over the directory they are in, in use or not.
func TestSpecialFilesSurvive(t *testing.T) {
	f := newFixture(t)
	f.write("d/a", "old\n", "d/was-file", "file\n")
	target := f.before("agent", 1)

	f.write("d/a", "new\n", "made/b", "made\n")
	listener, err := net.Listen("unix", f.path("d/socket"))
	must(t, err)
	defer listener.Close()
	must(t, syscall.Mkfifo(f.path("d/fifo"), 0o600))
	must(t, syscall.Mkfifo(f.path("made/fifo"), 0o600)) // where the rewind removes what is beside it
	must(t, os.Remove(f.path("d/was-file")))
	must(t, syscall.Mkfifo(f.path("d/was-file"), 0o600)) // where the target has a file
	special := []string{"d/fifo", "d/socket", "d/was-file", "made/fifo"}
	if os.Geteuid() == 0 { // the null device under another name
		if err := unix.Mknod(f.path("d/device"), unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))); err == nil {
			special = append([]string{"d/device"}, special...)
		}
	}
	f.after("agent", 1)
	before := inodes(t, f.dir)

	p := f.plan(RewindRequest{To: target.ID})
	var named []string
	for _, s := range p.NotCaptured {
		if s.Reason == workspace.ReasonSpecial {
			named = append(named, s.Path)
		}
	}
	same(t, "named", named, special)
	f.rewind(RewindRequest{To: target.ID})
	after := inodes(t, f.dir)
	for _, name := range special {
		if got, want := after[f.path(name)], before[f.path(name)]; got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if got, err := os.ReadFile(f.path("d/a")); err != nil || string(got) != "old\n" {
		t.Errorf("d/a is %q, %v", got, err)
	}
	if _, err := os.Lstat(f.path("made/b")); !os.IsNotExist(err) {
		t.Errorf("made/b is still there: %v", err)
	}
	conn, err := net.Dial("unix", f.path("d/socket"))
	if err != nil {
		t.Fatalf("the socket is of no use any more: %v", err)
	}
	must(t, conn.Close())
	if _, err := f.w.Undo(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	undone := inodes(t, f.dir)
	for _, name := range special {
		if got, want := undone[f.path(name)], before[f.path(name)]; got != want {
			t.Errorf("after the undo %s is %q, want %q", name, got, want)
		}
	}
}

// An undo or a redo that would pass over a path, because what is there now cannot be
// captured, is refused like one with conflicts, and can be repeated when the path is free.
func TestUndoStopsAtWhatCannotBeCaptured(t *testing.T) {
	f := newFixture(t)
	f.write("changed", "0\n", "gone", "0\n", "k", "0\n")
	c1 := f.before("c", 1)
	f.write("changed", "1\n", "k", "1\n", "made", "1\n")
	f.remove("gone")
	f.after("c", 1)
	worked := testenv.Snapshot(t, f.dir)
	f.rewind(RewindRequest{To: c1.ID})
	rewound := testenv.Snapshot(t, f.dir)
	block := func(names ...string) {
		for _, name := range names {
			f.remove(name)
			must(t, syscall.Mkfifo(f.path(name), 0o600))
		}
	}
	refused := func(what string, back func(context.Context, *UndoOptions) (*Applied, error), opts *UndoOptions, want ...string) {
		t.Helper()
		before := inodes(t, f.dir)
		_, err := back(t.Context(), opts)
		var conflict *ConflictError
		if !errors.As(err, &conflict) {
			t.Fatalf("%s: %v, want a conflict", what, err)
		}
		same(t, what, conflict.Paths, want)
		if text := want[0] + ": not captured: special file"; !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v, want %q in it", what, err, text)
		}
		if !maps.Equal(inodes(t, f.dir), before) {
			t.Errorf("%s changed something", what)
		}
	}
	all := []string{"changed", "gone", "made"} // to be restored, deleted and created
	block(all...)
	f.write("k", "mine\n")
	refused("undo", f.w.Undo, nil, "changed", "gone", "k", "made")
	refused("undo, theirs", f.w.Undo, &UndoOptions{Choice: Theirs}, all...)
	refused("undo, one path", f.w.Undo, &UndoOptions{Choice: Theirs, Choices: map[string]Choice{"gone": KeepMine}}, "changed", "made")
	f.remove(all...)
	f.write("changed", "0\n", "gone", "0\n", "k", "0\n")
	must(t, undo(f))
	f.expect(worked)
	block("changed", "gone")
	refused("redo", f.w.Redo, nil, "changed", "gone")
	f.remove("changed", "gone")
	f.write("changed", "1\n")
	_, err := f.w.Redo(t.Context(), nil)
	must(t, err)
	f.expect(rewound)

	// Whoever says so keeps what is there, and the rest is undone.
	block("changed", "gone")
	done, err := f.w.Undo(t.Context(), &UndoOptions{Choice: KeepMine})
	must(t, err)
	same(t, "kept", lines(done.Plan), []string{"keep changed", "restore k", "create made"})
	if err := undo(f); !errors.Is(err, ErrNothing) {
		t.Errorf("after the undo: %v, want ErrNothing", err)
	}
}

// A directory full of results that no agent made, ignored or not, with
// a file larger than any that is captured, is not touched by a rewind.
func TestUntrackedDirectorySurvives(t *testing.T) {
	files := testenv.Scale(3000, 50_000)
	for _, ignored := range []bool{false, true} {
		t.Run(fmt.Sprintf("ignored=%v", ignored), func(t *testing.T) {
			f := newFixture(t)
			f.write("src/a", "old\n")
			if ignored {
				f.write(".gitignore", "results/\n")
			}
			target := f.before("agent", 1)
			f.write("src/a", "new\n", "src/made", "made\n")
			f.after("agent", 1)

			for i := range files {
				f.write(fmt.Sprintf("results/%02d/run%d", i%50, i), "data")
			}
			big, err := os.Create(f.path("results/huge.bin"))
			must(t, err)
			must(t, big.Truncate(1<<30)) // a hole, which costs the test nothing
			must(t, big.Close())
			before := inodes(t, f.path("results"))

			p := f.plan(RewindRequest{To: target.ID})
			named := slices.ContainsFunc(p.NotCaptured, func(s workspace.Skipped) bool {
				return s.Path == "results" && ignored || s.Path == "results/huge.bin" && s.Reason == workspace.ReasonTooLarge
			})
			if !named {
				t.Error("the plan does not name what it cannot save")
			}
			for _, a := range p.Actions {
				if a.Changes() && strings.HasPrefix(a.Path, "results") {
					t.Errorf("the plan would %s %s", a.Kind, a.Path)
				}
			}
			done := f.rewind(RewindRequest{To: target.ID})
			if done.Files != 2 {
				t.Errorf("%d files changed, want 2", done.Files)
			}
			if after := inodes(t, f.path("results")); !maps.Equal(after, before) {
				t.Errorf("%d of %d paths are not as they were", len(testenv.Differ(after, before)), len(before))
			}
			if _, err := f.w.Undo(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			if after := inodes(t, f.path("results")); !maps.Equal(after, before) {
				t.Error("undo touched the directory")
			}
		})
	}
}

// A directory that becomes a FIFO while a plan is made hangs nobody.
func TestNamesOfWhatIsNoDirectory(t *testing.T) {
	f := newFixture(t)
	f.write("d/a", "a\n", "file", "f\n")
	must(t, syscall.Mkfifo(f.path("fifo"), 0o600))
	root, err := os.OpenRoot(f.dir)
	must(t, err)
	defer root.Close()
	names, err := readNames(root, "d")
	must(t, err)
	same(t, "names", names, []string{"a"})
	for _, name := range []string{"file", "fifo"} {
		if _, err := readNames(root, name); !errors.Is(err, syscall.ENOTDIR) {
			t.Errorf("%s: %v, want ENOTDIR", name, err)
		}
	}
}
