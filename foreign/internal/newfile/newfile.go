// Package newfile creates files beside those of an agent: it promises that a file
// appears complete or not at all, that it is on disk when Create returns, and that an
// existing file is never replaced.
package newfile

import (
	"bufio"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/stet-dev/stet/internal/osfile"
)

// Create writes a new file, readable only by the user. If the path exists the error is
// fs.ErrExist. After an error nothing is left.
func Create(path string, write func(io.Writer) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".stet-*.tmp") // 0600
	if err != nil {
		return fmt.Errorf("create %s: %w", path, err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	buf := bufio.NewWriterSize(f, 64<<10)
	if err := write(buf); err != nil {
		return err
	}
	if err := buf.Flush(); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := publish(f.Name(), path); err != nil {
		return fmt.Errorf("create %s: %w", path, err)
	}
	return osfile.SyncDir(filepath.Dir(path))
}

// CreateDir creates a directory, readable only by the user, with what fill puts into
// the temporary directory that it gets. The directory appears once it is complete. If
// the path exists, the error is fs.ErrExist. After an error nothing is left.
func CreateDir(path string, fill func(dir string) error) error {
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("create %s: %w", path, fs.ErrExist)
	}
	dir, err := os.MkdirTemp(filepath.Dir(path), ".stet-*.tmp") // 0700
	if err != nil {
		return fmt.Errorf("create %s: %w", path, err)
	}
	defer os.RemoveAll(dir)
	if err := fill(dir); err != nil {
		return err
	}
	// A directory with something in it is not replaced by a rename.
	if err := osfile.Rename(dir, path); err != nil {
		return fmt.Errorf("create %s: %w", path, err)
	}
	return osfile.SyncDir(filepath.Dir(path))
}

// CreateAt is Create for a file that fill writes under another name, such as a
// database, which may have files beside it until it is closed. fill gets a path in an
// empty directory of its own.
func CreateAt(path string, fill func(temp string) error) error {
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("create %s: %w", path, fs.ErrExist)
	}
	dir, err := os.MkdirTemp(filepath.Dir(path), ".stet-*.tmp") // 0700
	if err != nil {
		return fmt.Errorf("create %s: %w", path, err)
	}
	defer os.RemoveAll(dir)
	temp := filepath.Join(dir, filepath.Base(path))
	if err := fill(temp); err != nil {
		return err
	}
	if err := syncFile(temp); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := publish(temp, path); err != nil {
		return fmt.Errorf("create %s: %w", path, err)
	}
	return osfile.SyncDir(filepath.Dir(path))
}

// syncFile makes the content of a file durable, and the file readable only by the user.
func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	err = f.Chmod(0o600)
	if err == nil || runtime.GOOS == "windows" {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return err
}

// publish gives a file its name unless the name is taken. A file system without hard
// links gets a placeholder first, which the rename replaces.
func publish(from, to string) error {
	err := os.Link(from, to)
	if err == nil || os.IsExist(err) {
		return err
	}
	f, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	f.Close()
	if err := osfile.Rename(from, to); err != nil {
		os.Remove(to)
		return err
	}
	return nil
}
