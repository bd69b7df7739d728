//go:build unix

package checkpoint

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stet-dev/stet/internal/testenv"
)

// asNobody runs the calling test again as a user whom permissions bind, if this
// one is root. It reports whether it did.
func asNobody(t *testing.T) bool {
	t.Helper()
	if os.Geteuid() != 0 {
		return false
	}
	self, err := os.Executable()
	must(t, err)
	dir, err := os.MkdirTemp("", "stet-nobody-") // go's own build directory is root's
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	must(t, os.Chmod(dir, 0o777))
	program := filepath.Join(dir, "test")
	must(t, copyFile(program, self))
	cmd := exec.Command(program, "-test.run", "^"+t.Name()+"$", "-test.v")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "TMPDIR="+dir, "HOME="+dir+"/home")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534, Groups: []uint32{65533}}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("as nobody: %v\n%s", err, out)
	}
	return true
}

func copyFile(to, from string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close(), os.Chmod(to, 0o755))
}

// One target in a directory that may not be written: the rewind fails and
// everything is as before.
func TestReadOnlyDirectory(t *testing.T) {
	if asNobody(t) {
		return
	}
	f := newFixture(t)
	f.write("a", "0\n", "locked/b", "0\n", "z", "0\n", "gone", "0\n")
	c1 := f.before("c", 1)
	f.write("a", "1\n", "locked/b", "1\n", "z", "1\n", "made", "1\n")
	f.remove("gone")
	f.after("c", 1)
	must(t, os.Chmod(f.path("locked"), 0o555))
	t.Cleanup(func() { must(t, os.Chmod(f.path("locked"), 0o755)) })
	present := testenv.Snapshot(t, f.dir)
	_, err := f.w.Rewind(t.Context(), RewindRequest{To: c1.ID}, "")
	if !errors.Is(err, fs.ErrPermission) || !errors.Is(err, ErrRolledBack) {
		t.Errorf("got %v", err)
	}
	f.expect(present)
}

// A file that may not be read is named and survives, and the directory of the
// workspace may be closed again by a rewind.
func TestForbiddenFile(t *testing.T) {
	if asNobody(t) {
		return
	}
	f := newFixture(t)
	f.write("a", "0\n", "secret", "s\n", "closed/x", "0\n")
	must(t, os.Chmod(f.path("secret"), 0))
	must(t, os.Chmod(f.path("closed"), 0o555))
	res, err := f.w.Checkpoint(t.Context(), Request{Conversation: "c", Turn: 1, Side: Before})
	must(t, err)
	if len(res.NotCaptured) != 1 || res.NotCaptured[0].Path != "secret" {
		t.Errorf("not captured: %v", res.NotCaptured)
	}
	must(t, os.Chmod(f.path("closed"), 0o755))
	f.write("a", "1\n", "closed/x", "1\n", "closed/y", "1\n")
	f.after("c", 1)
	f.rewind(RewindRequest{To: res.Record.ID})
	if f.read("closed/x") != "0\n" || f.read("a") != "0\n" {
		t.Error("files are not back")
	}
	if info, err := os.Stat(f.path("closed")); err != nil || info.Mode().Perm() != 0o555 {
		t.Errorf("closed: %v, %v", info.Mode(), err)
	}
	if info, err := os.Lstat(f.path("secret")); err != nil || info.Mode().Perm() != 0 || info.Size() != 2 {
		t.Errorf("secret: %v, %v", info, err)
	}
	must(t, undo(f))
	if f.read("closed/y") != "1\n" {
		t.Error("undo did not bring closed/y back")
	}
	must(t, os.Chmod(f.path("closed"), 0o755))
}

// An undo that would change a file that may not be read, or one in a directory that may
// not, waits until it may.
func TestUndoStopsAtForbiddenFile(t *testing.T) {
	if asNobody(t) {
		return
	}
	for closed, at := range map[string]string{"f": "f", "d": "d/f"} {
		f := newFixture(t)
		f.write("f", "0\n", "k", "0\n", "d/f", "0\n")
		c1 := f.before("c", 1)
		f.write(at, "1\n", "k", "1\n")
		f.after("c", 1)
		f.rewind(RewindRequest{To: c1.ID})
		info, err := os.Stat(f.path(closed))
		must(t, err)
		must(t, os.Chmod(f.path(closed), 0))
		var conflict *ConflictError
		err = undo(f)
		must(t, os.Chmod(f.path(closed), info.Mode()))
		if !errors.As(err, &conflict) || !slices.Equal(conflict.Paths, []string{at}) || !strings.Contains(err.Error(), at+": not captured: permission denied") {
			t.Errorf("%s may not be read: %v, want a conflict about %s", closed, err, at)
		}
		f.holds(at, "0\n", "k", "0\n")
		must(t, undo(f))
		f.holds(at, "1\n", "k", "1\n")
	}
}

// Directories that an agent made and closed, as some package managers do, go like
// others, and so do changes in one whose mode the agent changed.
func TestClosedDirectoriesGo(t *testing.T) {
	if asNobody(t) {
		return
	}
	f := newFixture(t)
	f.write("a", "0\n", "kept/x", "0\n")
	must(t, os.Chmod(f.path("kept"), 0o500))
	want := testenv.Snapshot(t, f.dir)
	c1 := f.before("c", 1)
	must(t, os.Chmod(f.path("kept"), 0o700))
	f.write("mod/v1/x", "1\n", "mod/v1/sub/y", "1\n", "kept/x", "1\n", "kept/y", "1\n")
	closed := []string{"mod/v1/sub", "mod/v1", "kept"}
	for _, name := range closed {
		must(t, os.Chmod(f.path(name), 0o555))
	}
	t.Cleanup(func() {
		for _, name := range closed {
			_ = os.Chmod(f.path(name), 0o755) // for others to remove it
		}
	})
	f.after("c", 1)
	present := testenv.Snapshot(t, f.dir)
	f.rewind(RewindRequest{To: c1.ID})
	f.expect(want)
	must(t, undo(f))
	f.expect(present)
}

// A restored file stays with the group that it has been given to.
func TestGroupStays(t *testing.T) {
	if asNobody(t) {
		return
	}
	groups, err := os.Getgroups()
	must(t, err)
	i := slices.IndexFunc(groups, func(g int) bool { return g != os.Getegid() })
	if i < 0 {
		t.Skip("in one group only")
	}
	f := newFixture(t)
	f.write("shared", "0\n", "own", "0\n")
	must(t, os.Chown(f.path("shared"), -1, groups[i]))
	c1 := f.before("c", 1)
	f.write("shared", "1\n", "own", "1\n")
	f.after("c", 1)
	f.rewind(RewindRequest{To: c1.ID})
	for name, want := range map[string]int{"shared": groups[i], "own": os.Getegid()} {
		info, err := os.Stat(f.path(name))
		must(t, err)
		if got := int(info.Sys().(*syscall.Stat_t).Gid); got != want {
			t.Errorf("%s is of group %d, want %d", name, got, want)
		}
	}
}

// Directories and files in a group that the user is not in come back, with their
// set-group-id bit where the kernel lets it be; where not, that is told.
func TestForeignSetgid(t *testing.T) {
	const dirEnv = "STET_TEST_SETGID"
	if os.Geteuid() == 0 {
		dir := testenv.TempDir(t)
		must(t, os.Chown(dir, 65534, 1))
		must(t, os.Chmod(dir, 0o755|fs.ModeSetgid))
		t.Setenv(dirEnv, dir)
		asNobody(t)
		return
	}
	dir := os.Getenv(dirEnv)
	if dir == "" {
		t.Skip("only root can make a directory of a foreign group")
	}
	defer syscall.Umask(syscall.Umask(0o022))
	f := newFixture(t)
	f.dir = dir
	f.reopen()
	f.write("gone/x", "0\n", "gone/sub/y", "0\n", "stripped/x", "0\n", "wide/x", "0\n")
	c1 := f.before("c", 1)
	f.remove("gone")
	must(t, os.Chmod(f.path("stripped"), 0o700))
	f.write("wide/x", "1\n")
	f.after("c", 1)
	present := testenv.Snapshot(t, f.dir)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := f.w.Rewind(ctx, RewindRequest{To: c1.ID, Progress: func(done, all int) {
		if done == all {
			cancel()
		}
	}}, "")
	if !errors.Is(err, ErrRolledBack) {
		t.Errorf("interrupted: %v, want ErrRolledBack", err)
	}
	f.expect(present)
	done := f.rewind(RewindRequest{To: c1.ID})
	same(t, "without the bit", done.NoSetgid, []string{"stripped"})
	for name, want := range map[string]fs.FileMode{"gone": fs.ModeSetgid, "gone/sub": fs.ModeSetgid, "stripped": 0, "wide": fs.ModeSetgid} {
		info, err := os.Stat(f.path(name))
		must(t, err)
		if got := info.Mode(); got&fs.ModeSetgid != want || got.Perm() != 0o755 {
			t.Errorf("%s is %v, want setgid %v", name, got, want != 0)
		}
	}
	must(t, undo(f))
	f.expect(present)
}
