//go:build (linux || darwin || freebsd) && !portable

package swapdir

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// stageDir is a directory inside the changed one that holds new files before they
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
	fd, err := unix.Openat(d.root, name, listFlags, 0)
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

// open opens what is in a slot for reading.
func (s *stageDir) open(slot string) (*os.File, error) {
	fd, err := retry(func() (int, error) {
		return unix.Openat(s.fd, slot, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: s.path(slot), Err: err}
	}
	return os.NewFile(uintptr(fd), s.path(slot)), nil
}

// file stages a file, with sync makes its content durable, and says what it
// became. It works on the descriptor: os.File would register each with the poller.
func (s *stageDir) file(slot, target string, write func(io.Writer) error, mode uint32, own owner, sync bool) (st stat, err error) {
	path := s.path(slot)
	if err := s.d.about("create", path); err != nil {
		return stat{}, err
	}
	fd, err := s.create(slot, target)
	if err != nil {
		return stat{}, &fs.PathError{Op: "create", Path: path, Err: err}
	}
	f := &stagedFile{d: s.d, fd: fd, path: path}
	st, err = f.fill(write, mode, own)
	if err == nil && sync {
		err = f.sync()
	}
	if closed := unix.Close(fd); err == nil && closed != nil {
		err = &fs.PathError{Op: "close", Path: path, Err: closed}
	}
	return st, err
}

// create makes a file in the stage. If it can, it makes it in the directory of
// its target, without a name, and then names it in the stage: a file system lays
// it out beside its neighbours to be, and need not find room for all files of a
// rewind in one place. That took up to half a millisecond a file where it passes
// over what was freed a moment ago.
func (s *stageDir) create(slot, target string) (int, error) {
	if fd, err := s.createNear(slot, target); err == nil {
		return fd, nil
	}
	return retry(func() (int, error) {
		return unix.Openat(s.fd, slot, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	})
}

func (s *stageDir) createNear(slot, target string) (int, error) {
	parent, _ := splitPath(target)
	dir, done, err := s.d.dir(parent)
	if err != nil {
		return -1, err // it is yet to come
	}
	defer done()
	fd, err := retry(func() (int, error) { return createUnnamed(dir) })
	if err != nil {
		return -1, err // not every file system can
	}
	if err := nameIn(fd, s.fd, slot); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// stagedFile is a file that is being staged.
type stagedFile struct {
	d     *disk
	fd    int
	path  string
	size  int64 // what was written so far, holes included
	holes bool
}

func (f *stagedFile) fill(write func(io.Writer) error, mode uint32, own owner) (stat, error) {
	if err := f.d.about("write", f.path); err != nil {
		return stat{}, err
	}
	if err := write(f); err != nil {
		return stat{}, err
	}
	if f.holes { // one at the end is there only if the size says so
		if err := unix.Ftruncate(f.fd, f.size); err != nil {
			return stat{}, &fs.PathError{Op: "truncate", Path: f.path, Err: err}
		}
	}
	st, err := f.stat()
	if err != nil {
		return stat{}, err
	}
	if err := f.give(st, own); err != nil {
		return stat{}, err
	}
	if f.d.noModes {
		return f.stat()
	}
	if err := unix.Fchmod(f.fd, mode); err != nil { // after chown, which clears some bits
		return stat{}, &fs.PathError{Op: "chmod", Path: f.path, Err: err}
	}
	return f.stat()
}

// give gives the file to its owner and group. Others than root do what they can:
// a group that they are not in is lost, as with every editor.
func (f *stagedFile) give(st stat, own owner) error {
	root := os.Geteuid() == 0
	switch {
	case root && (st.uid != own.uid || st.gid != own.gid):
		if err := unix.Fchown(f.fd, own.uid, own.gid); err != nil {
			return &fs.PathError{Op: "chown", Path: f.path, Err: err}
		}
	case !root && own.gid >= 0 && st.gid != own.gid:
		_ = unix.Fchown(f.fd, -1, own.gid)
	}
	return nil
}

func (f *stagedFile) sync() error {
	if err := f.d.about("fsync", f.path); err != nil {
		return err
	}
	if _, err := retry(func() (struct{}, error) { return struct{}{}, flush(f.fd) }); err != nil {
		return &fs.PathError{Op: "fsync", Path: f.path, Err: err}
	}
	return nil
}

// syncFile makes the content of a file durable that was staged before, after an
// attempt to do that for all files, which may have failed.
func (s *stageDir) syncFile(slot string, failed error) error {
	path := s.path(slot)
	fd, err := retry(func() (int, error) {
		return unix.Openat(s.fd, slot, unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	})
	if errors.Is(err, unix.EACCES) { // its mode does not let us write
		fd, err = unix.Openat(s.fd, slot, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	}
	if errors.Is(err, unix.EACCES) {
		return failed
	}
	if err != nil {
		return &fs.PathError{Op: "open", Path: path, Err: err}
	}
	f := &stagedFile{d: s.d, fd: fd, path: path}
	err = f.sync()
	if closed := unix.Close(fd); err == nil && closed != nil {
		err = &fs.PathError{Op: "close", Path: path, Err: closed}
	}
	return err
}

func (f *stagedFile) writeAt(p []byte) error {
	for at := f.size; len(p) > 0; {
		n, err := retry(func() (int, error) { return unix.Pwrite(f.fd, p, at) })
		if err != nil {
			return &fs.PathError{Op: "write", Path: f.path, Err: err}
		}
		p, at = p[n:], at+int64(n)
	}
	return nil
}

func (f *stagedFile) stat() (stat, error) {
	var st unix.Stat_t
	if err := unix.Fstat(f.fd, &st); err != nil {
		return stat{}, &fs.PathError{Op: "stat", Path: f.path, Err: err}
	}
	return toStat(&st), nil
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
	err := unix.Mkdirat(s.fd, slot, mode&0o777)
	if err == nil && os.Geteuid() == 0 {
		err = unix.Fchownat(s.fd, slot, uid, gid, unix.AT_SYMLINK_NOFOLLOW)
	}
	var st stat
	if err == nil {
		st, err = statAt(s.fd, slot)
	}
	// Where it is as it should be by itself, it may have a set-group-id bit from the
	// workspace that a change would take away.
	if err == nil && st.mode&0o7777 != mode && !s.d.noModes {
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
	if err := flush(s.fd); err != nil {
		return &fs.PathError{Op: "fsync", Path: s.name, Err: err}
	}
	return s.d.syncDir("")
}

// swap lets a path and a slot trade places. It returns fs.ErrNotExist if nothing
// is at the path, and errors.ErrUnsupported where the file system cannot do it.
func (s *stageDir) swap(path, slot string) error {
	return s.rename("swap", path, func(dir int, name string) error {
		return exchange(s.fd, slot, dir, name)
	})
}

// put moves a slot to a path where nothing is.
func (s *stageDir) put(slot, path string) error {
	return s.rename("install", path, func(dir int, name string) error {
		return moveNew(s.fd, slot, dir, name)
	})
}

// take moves what is at a path to a slot that is free. Nobody else uses slots, so
// that nothing can be replaced where the file system cannot promise it.
func (s *stageDir) take(path, slot string) error {
	return s.rename("remove", path, func(dir int, name string) error {
		err := renameNew(dir, name, s.fd, slot)
		if errors.Is(err, errors.ErrUnsupported) {
			err = unix.Renameat(dir, name, s.fd, slot)
		}
		return err
	})
}

func (s *stageDir) rename(call, path string, fn func(dir int, name string) error) error {
	if err := s.d.about(call, path); err != nil {
		return err
	}
	return s.d.in(call, path, func(dir int, name string) error {
		err := fn(dir, name)
		if errors.Is(err, unix.EXDEV) {
			return ErrOtherFileSystem
		}
		return err
	})
}

// moveNew renames without ever replacing. Where the file system cannot do that
// in one step, a file gets a second name first, which fails if it is taken; a
// crash then may leave both, see untwin.
func moveNew(fromDir int, from string, toDir int, to string) error {
	err := renameNew(fromDir, from, toDir, to)
	if !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	st, err := statAt(fromDir, from)
	if err != nil {
		return err
	}
	if !st.dir {
		if err := unix.Linkat(fromDir, from, toDir, to, 0); err == nil || errors.Is(err, unix.EEXIST) {
			if err == nil {
				err = unix.Unlinkat(fromDir, from, 0)
			}
			return err
		}
	}
	if _, err := statAt(toDir, to); err == nil && !forgotten(toDir, to) {
		return unix.EEXIST
	}
	return unix.Renameat(fromDir, from, toDir, to)
}

// forgotten reports whether a name that was found is not in its directory under any
// spelling. Where names fold, a system may remember for a second what it found under one
// spelling after it has gone under another.
func forgotten(dir int, name string) bool {
	if strings.IndexFunc(name, func(r rune) bool { return r >= utf8.RuneSelf }) >= 0 {
		return false // only the file system knows its spellings
	}
	names, err := namesAt(dir, ".")
	return err == nil && !slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, name) })
}

// empty reports whether a staged directory holds nothing.
func (s *stageDir) empty(slot string) (bool, error) {
	return emptyAt(s.fd, slot)
}

// syncAll writes out everything that the file system holds in memory. It reports
// whether all of it is known to have arrived; if it is not, each file has to be
// asked: this file system may not report it, and what failed may be another's file.
func (s *stageDir) syncAll() (arrived bool, err error) {
	if err := s.d.about("syncfs", s.name); err != nil {
		return false, err
	}
	arrived, err = flushAll(s.fd)
	if err != nil {
		return false, &fs.PathError{Op: "syncfs", Path: s.name, Err: err}
	}
	return arrived, nil
}
