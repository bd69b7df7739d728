//go:build (linux || darwin || freebsd) && !portable

package swapdir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// disk changes a directory. Every path is resolved from the root's descriptor and
// never through a symbolic link, so that nothing outside is
// reached whatever others do to the directories meanwhile. os.Root would follow
// links inside the root, and cannot swap two files.
type disk struct {
	root    int // descriptor
	hook    func(call, path string) error
	workers int  // files that are handled side by side
	noModes bool // permission bits are not stored
	folds   bool // several spellings may be one name
}

const (
	// dirFlags open a directory to find names in it.
	dirFlags = openPath | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	// listFlags open a directory to list or to sync it.
	listFlags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
)

func openDisk(path string, hook func(call, path string) error) (*disk, error) {
	fd, err := retry(func() (int, error) { return unix.Open(path, openPath|unix.O_DIRECTORY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return &disk{root: fd, hook: hook, workers: stageWorkers}, nil
}

func (d *disk) close() { unix.Close(d.root) }

// dir opens the directory at a path and returns its descriptor, with the
// function that closes it.
func (d *disk) dir(path string) (fd int, done func(), err error) {
	if path == "" {
		return d.root, func() {}, nil
	}
	fd, err = openBeneath(d.root, path)
	if errors.Is(err, errors.ErrUnsupported) {
		fd, err = d.walk(path)
	}
	return fd, func() { unix.Close(fd) }, err
}

// walk opens a directory name by name.
func (d *disk) walk(path string) (int, error) {
	at := d.root
	for path != "" {
		var name string
		name, path, _ = strings.Cut(path, "/")
		next, err := unix.Openat(at, name, dirFlags, 0)
		if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.EMLINK) {
			err = unix.ENOTDIR // as Linux words a link
		}
		if at != d.root {
			unix.Close(at)
		}
		if err != nil {
			return -1, err
		}
		at = next
	}
	return at, nil
}

// in calls fn with the directory that holds a path, and the path's last name.
func (d *disk) in(call, path string, fn func(dir int, name string) error) error {
	parent, name := splitPath(path)
	_, err := retry(func() (struct{}, error) {
		dir, done, err := d.dir(parent)
		if err != nil {
			return struct{}{}, err
		}
		defer done()
		return struct{}{}, fn(dir, name)
	})
	if err != nil {
		return &fs.PathError{Op: call, Path: path, Err: err}
	}
	return nil
}

func statAt(dir int, name string) (stat, error) {
	var st unix.Stat_t
	err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	return toStat(&st), err
}

// lstat looks at a path. The error wraps fs.ErrNotExist also if a directory on
// the way is missing or is not a directory.
func (d *disk) lstat(path string) (st stat, err error) {
	err = d.in("lstat", path, func(dir int, name string) error {
		st, err = statAt(dir, name)
		return err
	})
	if errors.Is(err, unix.ENOTDIR) {
		err = &fs.PathError{Op: "lstat", Path: path, Err: fs.ErrNotExist}
	}
	return st, err
}

// look returns a looker. The caller closes it.
func (d *disk) look() *looker { return &looker{d: d, fd: -1} }

// looker looks at many paths and keeps the directory of the last one open, since
// neighbours follow each other. It is for looks only: what changes something
// finds its directory afresh.
type looker struct {
	d   *disk
	dir string
	fd  int // -1 for none
}

func (l *looker) close() {
	if l.fd >= 0 {
		unix.Close(l.fd)
	}
	l.fd = -1
}

// lstat is as that of a disk.
func (l *looker) lstat(path string) (stat, error) {
	i := strings.LastIndexByte(path, '/')
	if i < 0 {
		return l.d.lstat(path)
	}
	if l.fd < 0 || l.dir != path[:i] {
		l.close()
		fd, _, err := l.d.dir(path[:i])
		if err != nil {
			return l.d.lstat(path) // which tries again where that helps, and words the error
		}
		l.dir, l.fd = path[:i], fd
	}
	st, err := statAt(l.fd, path[i+1:])
	if err != nil {
		err = &fs.PathError{Op: "lstat", Path: path, Err: err}
	}
	return st, err
}

// owner returns who owns the directory.
func (d *disk) owner() (uid, gid int, err error) {
	var st unix.Stat_t
	if err := unix.Fstat(d.root, &st); err != nil {
		return 0, 0, fmt.Errorf("look at the directory: %w", err)
	}
	return int(st.Uid), int(st.Gid), nil
}

// syncDir makes the names in a directory durable.
func (d *disk) syncDir(path string) error {
	if err := d.about("fsync", path); err != nil {
		return err
	}
	name := path
	if name == "" {
		name = "."
	}
	return d.in("fsync", name, func(dir int, name string) error {
		fd, err := unix.Openat(dir, name, listFlags, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return flush(fd)
	})
}

// chmodDir changes the permission bits of a directory.
func (d *disk) chmodDir(path string, mode uint32) error {
	if err := d.about("chmod", path); err != nil {
		return err
	}
	if d.noModes {
		return nil
	}
	return d.in("chmod", path, func(dir int, name string) error {
		fd, err := unix.Openat(dir, name, dirFlags, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return chmodPath(fd, mode)
	})
}

// empty reports whether the directory at a path holds nothing.
func (d *disk) empty(path string) (empty bool, err error) {
	err = d.in("open", path, func(dir int, name string) error {
		empty, err = emptyAt(dir, name)
		return err
	})
	return empty, err
}

func emptyAt(dir int, name string) (bool, error) {
	fd, err := unix.Openat(dir, name, listFlags, 0)
	if err != nil {
		return false, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	_, err = f.Readdirnames(1)
	if errors.Is(err, io.EOF) {
		return true, nil
	}
	return false, err
}

// names lists the directory at a path.
func (d *disk) names(path string) (names []string, err error) {
	if path == "" {
		path = "."
	}
	err = d.in("open", path, func(dir int, name string) error {
		names, err = namesAt(dir, name)
		return err
	})
	return names, err
}

func namesAt(dir int, name string) ([]string, error) {
	fd, err := unix.Openat(dir, name, listFlags, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), name)
	names, err := f.Readdirnames(-1)
	return names, errors.Join(err, f.Close())
}
