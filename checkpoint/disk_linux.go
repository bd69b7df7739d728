package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// disk changes a workspace. Every path is walked from the root's descriptor, one
// name at a time and never through a symbolic link, so that nothing outside is
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

// dir returns a descriptor of the directory at a path, which the caller closes.
func (d *disk) dir(path string) (int, error) {
	at, err := unix.Dup(d.root)
	if err != nil {
		return -1, err
	}
	for path != "" {
		var name string
		name, path, _ = strings.Cut(path, "/")
		next, err := unix.Openat(at, name, dirFlags, 0)
		unix.Close(at)
		if err != nil {
			return -1, err
		}
		at = next
	}
	return at, nil
}

// in calls fn with the directory that holds a path, and the path's last name.
func (d *disk) in(call, path string, fn func(dir int, name string) error) error {
	parent, name := "", path
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		parent, name = path[:i], path[i+1:]
	}
	_, err := retry(func() (struct{}, error) {
		dir, err := d.dir(parent)
		if err != nil {
			return struct{}{}, err
		}
		defer unix.Close(dir)
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

// stageDir is a directory inside the workspace that holds new files before they
// take their places, and old ones afterwards.
type stageDir struct {
	d    *disk
	name string
	fd   int
}

// stage makes a staging directory, or opens one.
func (d *disk) stage(name string, create bool) (*stageDir, error) {
	if create {
		if err := d.about("mkdir", name); err != nil {
			return nil, err
		}
		if err := d.in("mkdir", name, func(dir int, name string) error { return unix.Mkdirat(dir, name, 0o700) }); err != nil {
			return nil, err
		}
	}
	fd, err := unix.Openat(d.root, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return &stageDir{d: d, name: name, fd: fd}, nil
}

func (s *stageDir) close() { unix.Close(s.fd) }

func (s *stageDir) path(slot string) string { return s.name + "/" + slot }

func (s *stageDir) stat(slot string) (stat, error) {
	st, err := statAt(s.fd, slot)
	if err != nil {
		return stat{}, &fs.PathError{Op: "lstat", Path: s.path(slot), Err: err}
	}
	return st, nil
}

// file stages a file and makes its content durable.
func (s *stageDir) file(slot string, content io.Reader, mode uint32, uid, gid int) error {
	path := s.path(slot)
	if err := s.d.about("create", path); err != nil {
		return err
	}
	fd, err := unix.Openat(s.fd, slot, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return &fs.PathError{Op: "create", Path: path, Err: err}
	}
	f := os.NewFile(uintptr(fd), path)
	err = s.fill(f, content, mode, uid, gid)
	return errors.Join(err, f.Close())
}

func (s *stageDir) fill(f *os.File, content io.Reader, mode uint32, uid, gid int) error {
	if err := s.d.about("write", f.Name()); err != nil {
		return err
	}
	if _, err := io.Copy(f, content); err != nil {
		return err
	}
	if os.Geteuid() == 0 {
		if err := f.Chown(uid, gid); err != nil {
			return err
		}
	}
	if err := unix.Fchmod(int(f.Fd()), mode); err != nil { // after chown, which clears some bits
		return &fs.PathError{Op: "chmod", Path: f.Name(), Err: err}
	}
	if err := s.d.about("fsync", f.Name()); err != nil {
		return err
	}
	return f.Sync()
}

// link stages a symbolic link.
func (s *stageDir) link(slot, target string, uid, gid int) error {
	if err := s.d.about("symlink", s.path(slot)); err != nil {
		return err
	}
	if err := unix.Symlinkat(target, s.fd, slot); err != nil {
		return &fs.PathError{Op: "symlink", Path: s.path(slot), Err: err}
	}
	if os.Geteuid() == 0 {
		if err := unix.Fchownat(s.fd, slot, uid, gid, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return &fs.PathError{Op: "chown", Path: s.path(slot), Err: err}
		}
	}
	return nil
}

// mkdir stages an empty directory.
func (s *stageDir) mkdir(slot string, mode uint32, uid, gid int) error {
	if err := s.d.about("mkdir", s.path(slot)); err != nil {
		return err
	}
	err := unix.Mkdirat(s.fd, slot, 0o700)
	if err == nil && os.Geteuid() == 0 {
		err = unix.Fchownat(s.fd, slot, uid, gid, unix.AT_SYMLINK_NOFOLLOW)
	}
	if err == nil {
		err = unix.Fchmodat(s.fd, slot, mode, 0) // nobody else knows the name
	}
	if err != nil {
		return &fs.PathError{Op: "mkdir", Path: s.path(slot), Err: err}
	}
	return nil
}

// sync makes the names in the staging directory durable, and its own.
func (s *stageDir) sync() error {
	if err := s.d.about("fsync", s.name); err != nil {
		return err
	}
	if err := unix.Fsync(s.fd); err != nil {
		return &fs.PathError{Op: "fsync", Path: s.name, Err: err}
	}
	return s.d.syncDir("")
}

// swap lets a path and a slot trade places. It returns fs.ErrNotExist if nothing
// is at the path, and errors.ErrUnsupported where the file system cannot do it.
func (s *stageDir) swap(path, slot string) error {
	return s.rename("swap", path, func(dir int, name string) error {
		return unix.Renameat2(s.fd, slot, dir, name, unix.RENAME_EXCHANGE)
	})
}

// put moves a slot to a path where nothing is.
func (s *stageDir) put(slot, path string) error {
	return s.rename("install", path, func(dir int, name string) error {
		return moveNew(s.fd, slot, dir, name)
	})
}

// take moves what is at a path to a slot that is free.
func (s *stageDir) take(path, slot string) error {
	return s.rename("remove", path, func(dir int, name string) error {
		return moveNew(dir, name, s.fd, slot)
	})
}

func (s *stageDir) rename(call, path string, fn func(dir int, name string) error) error {
	if err := s.d.about(call, path); err != nil {
		return err
	}
	return s.d.in(call, path, func(dir int, name string) error {
		err := fn(dir, name)
		if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
			return errors.ErrUnsupported
		}
		return err
	})
}

// moveNew renames without ever replacing. Where the file system cannot do that
// in one step, a file gets a second name first, which fails if it is taken.
func moveNew(fromDir int, from string, toDir int, to string) error {
	err := unix.Renameat2(fromDir, from, toDir, to, unix.RENAME_NOREPLACE)
	if !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOSYS) {
		return err
	}
	st, err := statAt(fromDir, from)
	if err != nil {
		return err
	}
	if !st.isDir() {
		if err := unix.Linkat(fromDir, from, toDir, to, 0); err == nil || errors.Is(err, unix.EEXIST) {
			if err == nil {
				err = unix.Unlinkat(fromDir, from, 0)
			}
			return err
		}
	}
	if _, err := statAt(toDir, to); err == nil {
		return unix.EEXIST
	}
	return unix.Renameat(fromDir, from, toDir, to)
}

// remove deletes the staging directory with all it holds.
func (d *disk) removeStage(name string) error {
	if err := d.about("cleanup", name); err != nil {
		return err
	}
	err := removeAll(d.root, name)
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return &fs.PathError{Op: "remove", Path: name, Err: err}
	}
	return nil
}

// removeAll deletes a name and, if it is a directory, what it holds, without
// following links.
func removeAll(dir int, name string) error {
	err := unix.Unlinkat(dir, name, 0)
	if err == nil || !errors.Is(err, unix.EISDIR) && !errors.Is(err, unix.EPERM) {
		return err
	}
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.EACCES) { // an old directory that its owner may not read
		if err = unix.Fchmodat(dir, name, 0o700, 0); err == nil {
			fd, err = unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
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
	for _, n := range names {
		if err := removeAll(fd, n); err != nil && !errors.Is(err, unix.ENOENT) {
			return err
		}
	}
	return unix.Unlinkat(dir, name, unix.AT_REMOVEDIR)
}

// empty reports whether a staged directory holds nothing.
func (s *stageDir) empty(slot string) (bool, error) {
	return emptyAt(s.fd, slot)
}

func emptyAt(dir int, name string) (bool, error) {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
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
