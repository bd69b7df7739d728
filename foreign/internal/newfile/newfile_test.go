package newfile_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stet-dev/stet/foreign/internal/newfile"
)

func text(s string) func(io.Writer) error {
	return func(w io.Writer) error { _, err := io.WriteString(w, s); return err }
}

func entries(t *testing.T, dir string) int {
	t.Helper()
	found, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return len(found)
}

func TestCreate(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	if err := newfile.Create(path, text("one")); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "one" || entries(t, dir) != 1 {
		t.Errorf("got %q, %v, %d files", got, err, entries(t, dir))
	}
}

func TestCreateDoesNotReplace(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	if err := os.WriteFile(path, []byte("theirs"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := newfile.Create(path, text("ours")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("got %v", err)
	}
	if got, _ := os.ReadFile(path); string(got) != "theirs" || entries(t, dir) != 1 {
		t.Errorf("got %q, %d files", got, entries(t, dir))
	}
}

func TestFailedCreateLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	failed := errors.New("failed")
	err := newfile.Create(filepath.Join(dir, "f"), func(w io.Writer) error {
		io.WriteString(w, "half")
		return failed
	})
	if !errors.Is(err, failed) || entries(t, dir) != 0 {
		t.Errorf("got %v, %d files", err, entries(t, dir))
	}
}

func TestADirectoryAppearsWholeOrNotAtAll(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "made")
	fail := errors.New("no")
	fill := func(d string) error { return os.WriteFile(filepath.Join(d, "f"), []byte("x"), 0o600) }
	err := newfile.CreateDir(path, func(d string) error {
		if err := fill(d); err != nil {
			return err
		}
		return fail
	})
	if left, _ := os.ReadDir(dir); !errors.Is(err, fail) || len(left) != 0 {
		t.Errorf("after an error: %v, %v", left, err)
	}
	if err := newfile.CreateDir(path, fill); err != nil {
		t.Fatal(err)
	}
	if err := newfile.CreateDir(path, fill); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a directory that is there: %v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("left: %v", left)
	}
}

func TestAFileWrittenUnderAnotherName(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	fail := errors.New("no")
	fill := func(temp string) error {
		if filepath.Dir(temp) == dir || filepath.Base(temp) != "f" {
			t.Errorf("written as %s", temp)
		}
		if err := os.WriteFile(temp+"-journal", nil, 0o600); err != nil {
			return err
		}
		return os.WriteFile(temp, []byte("x"), 0o644)
	}
	err := newfile.CreateAt(path, func(temp string) error { return errors.Join(fill(temp), fail) })
	if !errors.Is(err, fail) || entries(t, dir) != 0 {
		t.Errorf("after an error: %v, %d files", err, entries(t, dir))
	}
	if err := newfile.CreateAt(path, fill); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 || entries(t, dir) != 1 {
		t.Errorf("made %v, %v, %d files", info, err, entries(t, dir))
	}
	if err := newfile.CreateAt(path, func(string) error { return nil }); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a file that is there: %v", err)
	}
}
