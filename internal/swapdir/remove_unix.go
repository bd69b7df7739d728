//go:build (linux || darwin || freebsd) && !portable

package swapdir

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// removeStage deletes the staging directory with all it holds.
func (d *disk) removeStage(name string) error {
	if err := d.about("cleanup", name); err != nil {
		return err
	}
	err := removeAll(d.root, name, removeWorkers)
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return &fs.PathError{Op: "remove", Path: name, Err: err}
	}
	return nil
}

// removeWorkers is the number of old files that are removed side by side. Some
// file systems tell the disk about each before they go on to the next: one after
// the other, 1,000 of them took seconds.
const removeWorkers = 8

// removeAll deletes a name and, if it is a directory, what it holds, without
// following links.
func removeAll(dir int, name string, workers int) error {
	err := unix.Unlinkat(dir, name, 0)
	if err == nil || !errors.Is(err, unix.EISDIR) && !errors.Is(err, unix.EPERM) {
		return err
	}
	fd, err := unix.Openat(dir, name, listFlags, 0)
	if errors.Is(err, unix.EACCES) { // an old directory that its owner may not read
		if err = unix.Fchmodat(dir, name, 0o700, 0); err == nil {
			fd, err = unix.Openat(dir, name, listFlags, 0)
		}
	}
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	names, err := f.Readdirnames(-1)
	if err != nil {
		return err
	}
	var g errgroup.Group
	g.SetLimit(workers)
	for _, n := range names {
		g.Go(func() error {
			if err := removeAll(fd, n, 1); !errors.Is(err, unix.ENOENT) {
				return err
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return unix.Unlinkat(dir, name, unix.AT_REMOVEDIR)
}
