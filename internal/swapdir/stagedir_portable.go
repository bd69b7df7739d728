//go:build portable || !(linux || darwin || freebsd)

package swapdir

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// stageDir is a directory inside the changed one that holds new files before they
// take their places, and old ones afterwards.
type stageDir struct {
	d    *disk
	name string
}

// stage makes a staging directory, or finds one.
func (d *disk) stage(name string, create bool) (*stageDir, error) {
	if create {
		if err := d.about("mkdir", name); err != nil {
			return nil, err
		}
		if err := d.in("mkdir", name, func() error { return d.root.Mkdir(name, 0o700) }); err != nil {
			return nil, err
		}
	}
	st, err := d.lstat(name)
	if err == nil && !st.dir {
		err = &fs.PathError{Op: "open", Path: name, Err: syscall.ENOTDIR}
	}
	if err != nil {
		return nil, err
	}
	return &stageDir{d: d, name: name}, nil
}

func (s *stageDir) close() {}

func (s *stageDir) path(slot string) string { return s.name + "/" + slot }

func (s *stageDir) stat(slot string) (stat, error) { return s.d.lstat(s.path(slot)) }

// open opens what is in a slot for reading.
func (s *stageDir) open(slot string) (*os.File, error) {
	return s.openFile(slot, os.O_RDONLY)
}

func (s *stageDir) openFile(slot string, flag int) (f *os.File, err error) {
	path := s.path(slot)
	err = s.d.in("open", path, func() error {
		f, err = s.d.root.OpenFile(path, flag, 0o600)
		return err
	})
	return f, err
}

// file stages a file, with sync makes its content durable, and says what it became.
func (s *stageDir) file(slot, _ string, write func(io.Writer) error, mode uint32, own owner, sync bool) (st stat, err error) {
	path := s.path(slot)
	if err := s.d.about("create", path); err != nil {
		return stat{}, err
	}
	file, err := s.openFile(slot, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return stat{}, &fs.PathError{Op: "create", Path: path, Err: cause(err)}
	}
	f := &stagedFile{d: s.d, file: file, path: path}
	st, err = f.fill(write, mode, own)
	if err == nil && sync {
		err = f.sync()
	}
	if closed := file.Close(); err == nil && closed != nil {
		err = &fs.PathError{Op: "close", Path: path, Err: cause(closed)}
	}
	return st, err
}

// stagedFile is a file that is being staged.
type stagedFile struct {
	d     *disk
	file  *os.File
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
		if err := f.file.Truncate(f.size); err != nil {
			return stat{}, f.failed("truncate", err)
		}
	}
	if err := give(f.file, own); err != nil {
		return stat{}, f.failed("chown", err)
	}
	if f.d.noModes && hasModes { // else there is one bit: read only
		return f.stat()
	}
	if err := f.file.Chmod(fileMode(mode)); err != nil { // after chown, which clears some bits
		return stat{}, f.failed("chmod", err)
	}
	return f.stat()
}

func (f *stagedFile) failed(call string, err error) error {
	return &fs.PathError{Op: call, Path: f.path, Err: cause(err)}
}

func (f *stagedFile) writeAt(p []byte) error {
	if _, err := f.file.WriteAt(p, f.size); err != nil {
		return f.failed("write", err)
	}
	return nil
}

func (f *stagedFile) stat() (stat, error) {
	st, err := statFile(f.file)
	if err != nil {
		return stat{}, f.failed("stat", err)
	}
	return st, nil
}

func (f *stagedFile) sync() error {
	if err := f.d.about("fsync", f.path); err != nil {
		return err
	}
	if err := f.file.Sync(); err != nil {
		return f.failed("fsync", err)
	}
	return nil
}

// syncFile makes the content of a file durable that was staged before, after an
// attempt to do that for all files, which may have failed.
func (s *stageDir) syncFile(slot string, failed error) error {
	file, err := s.openFile(slot, os.O_WRONLY)
	if errors.Is(err, fs.ErrPermission) { // its mode does not let us write
		file, err = s.openFile(slot, os.O_RDONLY)
	}
	if errors.Is(err, fs.ErrPermission) {
		return failed
	}
	if err != nil {
		return err
	}
	f := &stagedFile{d: s.d, file: file, path: s.path(slot)}
	err = f.sync()
	if closed := file.Close(); err == nil && closed != nil {
		err = f.failed("close", closed)
	}
	return err
}

// link stages a symbolic link.
func (s *stageDir) link(slot, target string, uid, gid int) error {
	path := s.path(slot)
	if err := s.d.about("symlink", path); err != nil {
		return err
	}
	return s.d.in("symlink", path, func() error {
		err := s.d.root.Symlink(target, path)
		if err == nil && os.Geteuid() == 0 {
			err = s.d.root.Lchown(path, uid, gid)
		}
		return err
	})
}

// mkdir stages an empty directory.
func (s *stageDir) mkdir(slot string, mode uint32, uid, gid int) error {
	path := s.path(slot)
	if err := s.d.about("mkdir", path); err != nil {
		return err
	}
	return s.d.in("mkdir", path, func() error {
		err := s.d.root.Mkdir(path, fileMode(mode)&fs.ModePerm)
		if err == nil && os.Geteuid() == 0 {
			err = s.d.root.Lchown(path, uid, gid)
		}
		if err != nil || !hasModes || s.d.noModes {
			return err
		}
		// Where it is as it should be by itself, it may have a set-group-id bit from the
		// workspace that a change would take away.
		st, err := statIn(s.d.root, path)
		if err == nil && st.mode&0o7777 != mode {
			err = s.d.root.Chmod(path, fileMode(mode))
		}
		return err
	})
}

// sync makes the names in the staging directory durable, and its own.
func (s *stageDir) sync() error {
	if err := s.d.syncDir(s.name); err != nil {
		return err
	}
	return s.d.syncDir("")
}

// swap is not possible: the old file is moved aside before the new one comes.
func (s *stageDir) swap(path, _ string) error {
	if err := s.d.about("swap", path); err != nil {
		return err
	}
	return errors.ErrUnsupported
}

// put moves a slot to a path where nothing is.
func (s *stageDir) put(slot, path string) error {
	return s.rename("install", path, s.path(slot), path)
}

// take moves what is at a path to a slot that is free.
func (s *stageDir) take(path, slot string) error {
	return s.rename("remove", path, path, s.path(slot))
}

func (s *stageDir) rename(call, path, from, to string) error {
	if err := s.d.about(call, path); err != nil {
		return err
	}
	return s.d.in(call, path, func() error {
		err := renameNew(s.d.root, from, to)
		if isOtherDevice(err) {
			return ErrOtherFileSystem
		}
		return err
	})
}

// empty reports whether a staged directory holds nothing.
func (s *stageDir) empty(slot string) (bool, error) { return s.d.empty(s.path(slot)) }

// syncAll does nothing: each file is made durable by itself.
func (s *stageDir) syncAll() (arrived bool, err error) {
	return false, s.d.about("syncfs", s.name)
}
