//go:build portable || !(linux || darwin || freebsd)

package swapdir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/stet-dev/stet/internal/osfile"
)

// disk changes a directory through os.Root, which never leaves it. os.Root follows links
// inside the root, so every directory on the way to a path is looked at first. A program
// that turns one into a link between the look and the change can lead the change to
// another place inside the root, but not out of it.
type disk struct {
	root    *os.Root
	hook    func(call, path string) error
	workers int  // files that are handled side by side
	noModes bool // permission bits are not stored
	folds   bool // several spellings may be one name
}

func openDisk(path string, hook func(call, path string) error) (*disk, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	return &disk{root: root, hook: hook, workers: stageWorkers}, nil
}

func (d *disk) close() { d.root.Close() }

// reach looks at the directories of a path, from the root on: all must be directories, not
// links to them.
func (d *disk) reach(path string) error {
	for i := range len(path) + 1 {
		if i == 0 || i < len(path) && path[i] != '/' {
			continue
		}
		info, err := d.root.Lstat(path[:i])
		if err != nil {
			return err
		}
		if !info.IsDir() {
			return syscall.ENOTDIR
		}
	}
	return nil
}

// in calls fn when the directory that holds a path was found without links.
func (d *disk) in(call, path string, fn func() error) error {
	parent, _ := splitPath(path)
	_, err := retry(func() (struct{}, error) {
		if err := d.reach(parent); err != nil {
			return struct{}{}, osfile.InUse(err)
		}
		return struct{}{}, osfile.InUse(fn())
	})
	if err != nil {
		return &fs.PathError{Op: call, Path: path, Err: cause(err)}
	}
	return nil
}

// cause takes away what names the path and the call a second time.
func cause(err error) error {
	switch e := err.(type) {
	case *fs.PathError:
		return e.Err
	case *os.LinkError:
		return e.Err
	}
	return err
}

// lstat looks at a path. The error wraps fs.ErrNotExist also if a directory on
// the way is missing or is not a directory.
func (d *disk) lstat(path string) (st stat, err error) {
	err = d.in("lstat", path, func() error {
		st, err = statIn(d.root, path)
		return err
	})
	if errors.Is(err, syscall.ENOTDIR) {
		err = &fs.PathError{Op: "lstat", Path: path, Err: fs.ErrNotExist}
	}
	return st, err
}

// look returns a looker. The caller closes it.
func (d *disk) look() *looker { return &looker{d: d} }

// looker looks at many paths and looks at the directory of the last one only once, since
// neighbours follow each other. It is for looks only.
type looker struct {
	d   *disk
	dir string // was reached
}

func (l *looker) close() {}

// lstat is as that of a disk.
func (l *looker) lstat(path string) (stat, error) {
	dir, _ := splitPath(path)
	if dir == "" || dir != l.dir {
		st, err := l.d.lstat(path)
		if err == nil {
			l.dir = dir
		}
		return st, err
	}
	st, err := statIn(l.d.root, path)
	if err != nil {
		return l.d.lstat(path) // which tries again where that helps, and words the error
	}
	return st, nil
}

// owner returns who owns the directory.
func (d *disk) owner() (uid, gid int, err error) {
	st, err := statIn(d.root, ".")
	if err != nil {
		return 0, 0, fmt.Errorf("look at the directory: %w", err)
	}
	return st.uid, st.gid, nil
}

// syncDir makes the names in a directory durable, where the system can.
func (d *disk) syncDir(path string) error {
	if err := d.about("fsync", path); err != nil {
		return err
	}
	if !syncsDirs {
		return nil
	}
	name := path
	if name == "" {
		name = "."
	}
	return d.in("fsync", name, func() error {
		if err := d.reach(path); err != nil {
			return err
		}
		dir, err := d.root.Open(name)
		if err != nil {
			return err
		}
		return errors.Join(dir.Sync(), dir.Close())
	})
}

// chmodDir changes the permission bits of a directory, where the system has them.
func (d *disk) chmodDir(path string, mode uint32) error {
	if err := d.about("chmod", path); err != nil {
		return err
	}
	if !hasModes || d.noModes {
		return nil
	}
	return d.in("chmod", path, func() error {
		if err := d.reach(path); err != nil {
			return err
		}
		return d.root.Chmod(path, fileMode(mode))
	})
}

// empty reports whether the directory at a path holds nothing.
func (d *disk) empty(path string) (empty bool, err error) {
	err = d.in("open", path, func() error {
		if err := d.reach(path); err != nil {
			return err
		}
		dir, err := d.root.Open(path)
		if err != nil {
			return err
		}
		_, err = dir.Readdirnames(1)
		if empty = errors.Is(err, io.EOF); empty {
			err = nil
		}
		return errors.Join(err, dir.Close())
	})
	return empty, err
}

// removeStage deletes the staging directory with all it holds.
func (d *disk) removeStage(name string) error {
	if err := d.about("cleanup", name); err != nil {
		return err
	}
	err := d.in("remove", name, func() error { return d.root.RemoveAll(name) })
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	// Old directories that their owner may not read or change are opened up first.
	err = fs.WalkDir(d.root.FS(), name, func(path string, e fs.DirEntry, _ error) error {
		if e != nil && e.IsDir() {
			_ = d.root.Chmod(path, 0o700)
		}
		return nil
	})
	return errors.Join(err, d.in("remove", name, func() error { return d.root.RemoveAll(name) }))
}

// fileMode returns permission bits as package os has them.
func fileMode(mode uint32) fs.FileMode {
	m := fs.FileMode(mode & 0o777)
	for bit, flag := range map[uint32]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if mode&bit != 0 {
			m |= flag
		}
	}
	return m
}

// names lists the directory at a path.
func (d *disk) names(path string) (names []string, err error) {
	name := path
	if name == "" {
		name = "."
	}
	err = d.in("open", name, func() error {
		if err := d.reach(path); err != nil {
			return err
		}
		dir, err := d.root.Open(name)
		if err != nil {
			return err
		}
		names, err = dir.Readdirnames(-1)
		return errors.Join(err, dir.Close())
	})
	return names, err
}
