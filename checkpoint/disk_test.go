package checkpoint

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Both ways to open a directory refuse links on the way, and at its end.
func TestDirectoriesWithoutLinks(t *testing.T) {
	root := tempDir(t)
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
