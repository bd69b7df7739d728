package testenv

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
)

// TempDir returns a directory that goes with the test, in memory where there is
// a place for it, for tests that sync thousands of files.
func TempDir(t testing.TB) string {
	t.Helper()
	if runtime.GOOS != "linux" {
		return t.TempDir()
	}
	dir, err := os.MkdirTemp("/dev/shm", "stet-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	})
	return dir
}

// Snapshot describes everything below a directory, .git included: kinds, modes,
// contents, link targets. Times are left out. Windows stores of modes only whether a file is
// read-only: what is not has the usual one.
func Snapshot(t testing.TB, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text := modeOf(info).String()
		switch {
		case info.Mode().IsRegular():
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text += " " + string(data)
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			text += " -> " + target
		}
		out[filepath.ToSlash(name)] = text
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func modeOf(info fs.FileInfo) fs.FileMode {
	switch mode := info.Mode(); {
	case runtime.GOOS != "windows" || mode.Perm()&0o200 == 0:
		return mode
	case mode.IsDir():
		return mode.Type() | 0o755
	default:
		return mode.Type() | 0o644
	}
}

// NeedModes skips a test that is about permission bits where the system stores none.
func NeedModes(t testing.TB) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the system stores no permission bits")
	}
}

// HasMode reports whether a file has permission bits, or the system stores none.
func HasMode(info fs.FileInfo, want fs.FileMode) bool {
	return runtime.GOOS == "windows" || info.Mode().Perm() == want
}

// Differ lists how two snapshots differ.
func Differ(got, want map[string]string) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if g, ok := got[name]; !ok {
			out = append(out, "missing "+name)
		} else if g != want[name] {
			out = append(out, fmt.Sprintf("%s is %.60q, want %.60q", name, g, want[name]))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[name]; !ok {
			out = append(out, "extra "+name)
		}
	}
	return out
}

// Links reports whether tests can make symbolic links as a rewind does: on Windows that
// takes a privilege, and Wine cannot.
func Links(t testing.TB) bool {
	t.Helper()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	return root.Symlink("target", "link") == nil
}
