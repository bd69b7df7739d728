//go:build (linux || darwin || freebsd) && !portable

package swapdir

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stet-dev/stet/internal/testenv"
)

// Both ways to open a directory refuse links on the way, and at its end.
func TestDirectoriesWithoutLinks(t *testing.T) {
	root := testenv.TempDir(t)
	must(t, os.MkdirAll(filepath.Join(root, "a/b/c"), 0o755))
	must(t, os.Symlink("a", filepath.Join(root, "in")))
	must(t, os.Symlink("/tmp", filepath.Join(root, "a/out")))
	d, err := openDisk(root, nil)
	must(t, err)
	defer d.close()
	open := map[string]func(string) error{
		"dir": func(path string) error {
			_, done, err := d.dir(path)
			if err == nil {
				done()
			}
			return err
		},
		"walk": func(path string) error {
			fd, err := d.walk(path)
			if err == nil {
				err = syscall.Close(fd)
			}
			return err
		},
	}
	for name, fn := range open {
		for path, want := range map[string]error{
			"a": nil, "a/b/c": nil, "in": syscall.ENOTDIR, "in/b": syscall.ENOTDIR, "a/out": syscall.ENOTDIR, "none": syscall.ENOENT,
		} {
			if err := fn(path); !errors.Is(err, want) {
				t.Errorf("%s %s: %v, want %v", name, path, err, want)
			}
		}
	}
}

// What lies on another file system is named, with the reason.
func TestOtherFileSystem(t *testing.T) {
	root, elsewhere := t.TempDir(), testenv.TempDir(t)
	d, err := openDisk(root, nil)
	must(t, err)
	defer d.close()
	other, err := openDisk(elsewhere, nil)
	must(t, err)
	defer other.close()
	s, err := other.stage("stage", true)
	must(t, err)
	defer s.close()
	s.d = d // the paths are those of the workspace
	must(t, os.WriteFile(filepath.Join(root, "old"), nil, 0o644))
	must(t, os.WriteFile(filepath.Join(elsewhere, "stage/n0"), nil, 0o644))
	if here, there := deviceOf(t, root), deviceOf(t, elsewhere); here == there {
		t.Skip("there is one file system only")
	}
	for path, err := range map[string]error{"old": s.swap("old", "n0"), "./old": s.take("old", "o0"), "new": s.put("n0", "new")} {
		if !errors.Is(err, ErrOtherFileSystem) || !strings.Contains(err.Error(), filepath.Base(path)+": lies on another file system") {
			t.Errorf("%s: %v, want ErrOtherFileSystem", path, err)
		}
	}
}

func deviceOf(t *testing.T, path string) uint64 {
	t.Helper()
	var st syscall.Stat_t
	must(t, syscall.Stat(path, &st))
	return uint64(st.Dev)
}

// stagedFileOf returns a file to be written as a staged one.
func stagedFileOf(file *os.File) *stagedFile {
	return &stagedFile{d: &disk{}, fd: int(file.Fd()), path: file.Name()}
}
