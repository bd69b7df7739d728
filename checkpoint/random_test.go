package checkpoint

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stet-dev/stet/internal/testenv"
)

// agent changes a workspace at random, as an agent with a shell would.
type agent struct {
	f   *fixture
	rnd *rand.Rand
}

func (a *agent) name() string {
	names := []string{"a", "b", "c.txt", "README", "readme", "dir", "dir/x", "dir/y.go", "dir/sub", "dir/sub/z", "Dir", "Dir/x",
		"repo/src/m.go", "repo/n", "sp ace/ü", "bad-\xff-utf8", "deep/1/2/3/4/leaf", "link", "dir/link", "bin"}
	return names[a.rnd.IntN(len(names))]
}

// act does one thing. What cannot be done, such as writing below a file, is
// passed over.
func (a *agent) act() {
	path := a.f.path(a.name())
	switch a.rnd.IntN(12) {
	case 0, 1, 2, 3:
		a.write(path, strings.Repeat(fmt.Sprintln("line", a.rnd.IntN(100)), a.rnd.IntN(20)))
	case 4:
		a.write(path, string([]byte{0, 1, 2, byte(a.rnd.IntN(256))}))
	case 5, 6:
		_ = os.RemoveAll(path)
	case 7:
		_ = os.MkdirAll(path, 0o755)
	case 8:
		_ = os.MkdirAll(filepath.Dir(path), 0o755)
		_ = os.Remove(path)
		_ = os.Symlink([]string{"a", "../outside", "nowhere", "/etc/passwd"}[a.rnd.IntN(4)], path)
	case 9:
		if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSymlink == 0 {
			_ = os.Chmod(path, []fs.FileMode{0o644, 0o755, 0o600, 0o700}[a.rnd.IntN(4)])
		}
	case 10:
		to := a.f.path(a.name())
		_ = os.MkdirAll(filepath.Dir(to), 0o755)
		_ = os.Rename(path, to)
	case 11: // case only
		dir, name := filepath.Split(path)
		_ = os.Rename(path, dir+strings.ToUpper(name))
	}
}

func (a *agent) write(path, content string) {
	_ = os.MkdirAll(filepath.Dir(path), 0o755)
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return // do not write through links to the outside
	}
	_ = os.WriteFile(path, []byte(content), 0o644)
}

// Rewinding a random history to any checkpoint and back gives the same trees.
func TestRandomHistories(t *testing.T) {
	for seed := range uint64(testenv.Scale(12, 300)) {
		f := newFixture(t)
		f.write(".git/HEAD", "ref\n", ".git/objects/aa", "x", "repo/.git/HEAD", "nested\n", ".gitignore", "ignored/\n", "ignored/data", "precious")
		a := &agent{f, rand.New(rand.NewPCG(seed, 1))}
		points := []*Record{f.save(Request{Conversation: "c"})}
		trees := []map[string]string{testenv.Snapshot(t, f.dir)}
		for turn := range uint64(8) {
			f.before("c", turn+1)
			for range 1 + a.rnd.IntN(12) {
				a.act()
			}
			f.keepRepo()
			points = append(points, f.after("c", turn+1))
			trees = append(trees, testenv.Snapshot(t, f.dir))
		}
		back(t, f, a.rnd, points, trees, fmt.Sprintf("seed %d", seed))
	}
}

// keepRepo puts back what must be there in every tree, should an agent have
// removed it: nothing of it is captured.
func (f *fixture) keepRepo() {
	if info, err := os.Lstat(f.path("repo")); err != nil || !info.IsDir() {
		f.remove("repo")
	}
	f.write("repo/.git/HEAD", "nested\n")
}

// back goes to random checkpoints, and by undo and redo back and forth.
func back(t *testing.T, f *fixture, rnd *rand.Rand, points []*Record, trees []map[string]string, what string) {
	t.Helper()
	now := len(points) - 1
	for i := range testenv.Scale(6, 20) {
		to := rnd.IntN(len(points))
		if _, err := f.w.Rewind(t.Context(), RewindRequest{To: points[to].ID}, ""); err != nil {
			t.Fatalf("%s: %d → %d: %v", what, now, to, err)
		}
		if d := testenv.Differ(testenv.Snapshot(t, f.dir), trees[to]); len(d) > 0 {
			t.Fatalf("%s: %d → %d:\n%s", what, now, to, strings.Join(d, "\n"))
		}
		if i%2 == 0 {
			f.reopen()
			must(t, undo(f))
			if d := testenv.Differ(testenv.Snapshot(t, f.dir), trees[now]); len(d) > 0 {
				t.Fatalf("%s: undo of %d → %d:\n%s", what, now, to, strings.Join(d, "\n"))
			}
			if _, err := f.w.Redo(t.Context(), nil); err != nil {
				t.Fatalf("%s: redo: %v", what, err)
			}
		}
		now = to
	}
}

// The same with a history that people made.
func TestGitHistory(t *testing.T) {
	repo := gitRepo(t)
	commits := strings.Fields(git(t, repo, "log", "--format=%H", "--reverse"))
	if most := testenv.Scale(12, 200); len(commits) > most {
		commits = commits[:most]
	}
	f := newFixture(t)
	f.write(".git/HEAD", "ref\n", "vendor/lib/.git/HEAD", "nested\n")
	points := []*Record{f.save(Request{Conversation: "c"})}
	trees := []map[string]string{testenv.Snapshot(t, f.dir)}
	for i, commit := range commits {
		f.before("c", uint64(i+1))
		f.checkout(repo, commit)
		points = append(points, f.after("c", uint64(i+1)))
		trees = append(trees, testenv.Snapshot(t, f.dir))
	}
	back(t, f, rand.New(rand.NewPCG(1, 2)), points, trees, "git history")
}

// gitRepo returns this repository or, where there is none, one made for the
// occasion.
func gitRepo(t *testing.T) string {
	t.Helper()
	testenv.Need(t, "git")
	if runtime.GOOS == "windows" {
		_, err := exec.LookPath("git")
		testenv.SkipWithout(t, "git", err)
	}
	if out, err := exec.Command("git", "rev-parse", "--show-toplevel").Output(); err == nil {
		return strings.TrimSpace(string(out))
	} else if errors.Is(err, exec.ErrNotFound) {
		t.Fatal("git is needed for this test")
	}
	dir := t.TempDir()
	t.Cleanup(func() { // for others than root to remove it
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, _ error) error {
			if d != nil && d.IsDir() {
				return os.Chmod(path, 0o755)
			}
			return nil
		})
	})
	git(t, dir, "init", "-q")
	a := &agent{&fixture{t: t, dir: dir}, rand.New(rand.NewPCG(7, 7))}
	for i := range 12 {
		for range 10 {
			a.act()
		}
		git(t, dir, "add", "-A")
		git(t, dir, "-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "-q", "--allow-empty", "-m", fmt.Sprint(i))
	}
	return dir
}

func git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git %v: %v: %s", args, err, stderr.String())
	}
	return string(out)
}

// checkout makes the workspace what a commit is, touching only what differs.
func (f *fixture) checkout(repo, commit string) {
	f.t.Helper()
	keep := map[string]bool{".git": true, "vendor": true}
	r := tar.NewReader(strings.NewReader(git(f.t, repo, "archive", "--format=tar", commit)))
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		must(f.t, err)
		name := strings.TrimSuffix(h.Name, "/")
		if h.Typeflag == tar.TypeXGlobalHeader {
			continue
		}
		for n := name; n != "."; n = filepath.Dir(n) {
			keep[n] = true
		}
		data, err := io.ReadAll(r)
		must(f.t, err)
		f.place(name, h, data)
	}
	must(f.t, filepath.WalkDir(f.dir, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(f.dir, path)
		if err != nil || name == "." || name == ".git" || name == "vendor" {
			if name == ".git" || name == "vendor" {
				return fs.SkipDir
			}
			return err
		}
		if keep[name] {
			return nil
		}
		if err := os.RemoveAll(path); err != nil || !d.IsDir() {
			return err
		}
		return fs.SkipDir
	}))
}

func (f *fixture) place(name string, h *tar.Header, data []byte) {
	f.t.Helper()
	path := f.path(name)
	switch h.Typeflag {
	case tar.TypeDir:
		must(f.t, os.MkdirAll(path, 0o755))
	case tar.TypeSymlink:
		f.remove(name)
		must(f.t, os.Symlink(h.Linkname, path))
	default:
		if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, data) {
			return
		}
		f.write(name, string(data))
		must(f.t, os.Chmod(path, h.FileInfo().Mode().Perm()))
	}
}
