package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"golang.org/x/sys/unix"
)

// disk changes a workspace. Every path is resolved from the root's descriptor and
// never through a symbolic link, so that nothing outside is
// reached whatever others do to the directories meanwhile. os.Root would follow
// links inside the root, and cannot swap two files.
type disk struct {
	root int // descriptor
	hook func(call, path string) error
}

const dirFlags = unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC

func openDisk(path string, hook func(call, path string) error) (*disk, error) {
	fd, err := retry(func() (int, error) { return unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return &disk{root: fd, hook: hook}, nil
}

func (d *disk) close() { unix.Close(d.root) }

// about is called before every change.
func (d *disk) about(call, path string) error {
	if d.hook == nil {
		return nil
	}
	if err := d.hook(call, path); err != nil {
		return &fs.PathError{Op: call, Path: path, Err: err}
	}
	return nil
}

// dir opens the directory at a path and returns its descriptor, with the
// function that closes it.
func (d *disk) dir(path string) (fd int, done func(), err error) {
	if path == "" {
		return d.root, func() {}, nil
	}
	fd, err = unix.Openat2(d.root, path, &unix.OpenHow{
		Flags:   dirFlags,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	switch {
	case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EPERM), errors.Is(err, unix.EINVAL):
		fd, err = d.walk(path) // an old kernel, or a sandbox that does not know the call
	case errors.Is(err, unix.ELOOP):
		err = unix.ENOTDIR // as the walk has it
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

// stat is what tells one state of a file from another.
type stat struct {
	dev, ino uint64
	size     int64
	mtime    int64 // nanoseconds
	mode     uint32
	uid, gid int
}

func (s stat) isDir() bool { return s.mode&unix.S_IFMT == unix.S_IFDIR }

// same reports whether two looks saw the same, unchanged file. The change time is
// left out, since moving a file changes it, and the size and times of
// directories, which follow what they hold.
func (s stat) same(o stat) bool {
	if s.isDir() && o.isDir() {
		return s.dev == o.dev && s.ino == o.ino
	}
	return s.dev == o.dev && s.ino == o.ino && s.size == o.size && s.mtime == o.mtime && s.mode == o.mode
}

func toStat(st *unix.Stat_t) stat {
	return stat{
		dev: st.Dev, ino: st.Ino, size: st.Size, mtime: unix.TimespecToNsec(st.Mtim),
		mode: st.Mode, uid: int(st.Uid), gid: int(st.Gid),
	}
}

func statAt(dir int, name string) (stat, error) {
	var st unix.Stat_t
	err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	return toStat(&st), err
}

// lstat looks at a path. The error wraps fs.ErrNotExist also if a directory on
// the way is missing or is none.
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

// stampClock returns the time that the kernel would stamp on a file now. It moves
// in ticks: two writes within a tick get the same stamp.
func stampClock() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &ts); err != nil {
		return 0 // as if every file had been written just now
	}
	return ts.Nano()
}

// owner returns who owns the workspace.
func (d *disk) owner() (uid, gid int, err error) {
	var st unix.Stat_t
	if err := unix.Fstat(d.root, &st); err != nil {
		return 0, 0, fmt.Errorf("look at workspace: %w", err)
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
		fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Fsync(fd)
	})
}

// chmodDir changes the permission bits of a directory.
func (d *disk) chmodDir(path string, mode uint32) error {
	if err := d.about("chmod", path); err != nil {
		return err
	}
	return d.in("chmod", path, func(dir int, name string) error {
		fd, err := unix.Openat(dir, name, dirFlags, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		// A descriptor of a directory that may not be read can only be named so.
		return unix.Chmod(fmt.Sprintf("/proc/self/fd/%d", fd), mode)
	})
}

// stagedStat is the inverse of what a journal keeps of a staged object.
func stagedStat(s interface {
	GetNewInode() uint64
	GetNewSize() uint64
	GetNewMtimeNs() int64
	GetNewIsDir() bool
}) stat {
	st := stat{ino: s.GetNewInode(), size: int64(s.GetNewSize()), mtime: s.GetNewMtimeNs()}
	if s.GetNewIsDir() {
		st.mode = unix.S_IFDIR
	}
	return st
}
