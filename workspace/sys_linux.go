//go:build !portable

package workspace

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// dirFD is an open directory.
type dirFD int

// holdsIndex is whether an index file stays open while the index is used.
const holdsIndex = true

const (
	dirFlags  = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fileFlags = unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC
)

// openRoot opens the root directory of a scan. The root itself may be reached through
// links, because the user names it.
func openRoot(path string) (dirFD, error) {
	fd, err := retryEINTR(func() (int, error) {
		return unix.Open(path, dirFlags&^unix.O_NOFOLLOW, 0)
	})
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return dirFD(fd), nil
}

func (d dirFD) close() { unix.Close(int(d)) }

// noOpenat2 is set if the kernel or a sandbox does not support it.
var noOpenat2 atomic.Bool

// openDir opens a directory below d by its path, following no link on the way: a
// component that was replaced by a link is an error.
func (d dirFD) openDir(path string) (dirFD, error) {
	if path == "" {
		path = "."
	}
	if !noOpenat2.Load() && len(path) < unix.PathMax {
		how := unix.OpenHow{Flags: dirFlags, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS}
		fd, err := retryEINTR(func() (int, error) { return unix.Openat2(int(d), path, &how) })
		switch err {
		case nil:
			return dirFD(fd), nil
		case unix.ENOSYS, unix.EPERM:
			noOpenat2.Store(true)
		case unix.EAGAIN: // a rename raced with the lookup; the slow way has no such race
		default:
			return -1, err
		}
	}
	return d.openDirStepwise(path)
}

func (d dirFD) openDirStepwise(path string) (dirFD, error) {
	cur := d
	for name := range strings.SplitSeq(path, "/") {
		fd, err := retryEINTR(func() (int, error) { return unix.Openat(int(cur), name, dirFlags, 0) })
		if cur != d {
			cur.close()
		}
		if err != nil {
			return -1, err
		}
		cur = dirFD(fd)
	}
	return cur, nil
}

// openFile opens a file for reading without following a link and without
// waiting for the other end of a FIFO.
func (d dirFD) openFile(name string) (*openedFile, error) {
	fd, err := retryEINTR(func() (int, error) { return unix.Openat(int(d), name, fileFlags, 0) })
	if err != nil {
		return nil, err
	}
	return &openedFile{fd: fd}, nil
}

func (d dirFD) lstat(name string) (fileStat, error) {
	var st unix.Stat_t
	err := unix.Fstatat(int(d), name, &st, unix.AT_SYMLINK_NOFOLLOW)
	for err == unix.EINTR {
		err = unix.Fstatat(int(d), name, &st, unix.AT_SYMLINK_NOFOLLOW)
	}
	return statOf(&st), err
}

func (d dirFD) stat() (fileStat, error) {
	var st unix.Stat_t
	err := unix.Fstat(int(d), &st)
	return statOf(&st), err
}

func (d dirFD) readlink(name string) (string, error) {
	buf := make([]byte, unix.PathMax+1)
	n, err := unix.Readlinkat(int(d), name, buf)
	if err != nil {
		return "", err
	}
	return string(buf[:n]), nil
}

// list returns the names in a directory in no order. buf is scratch space.
func (d dirFD) list(buf []byte) ([]dirent, error) {
	var ents []dirent
	for {
		n, err := retryEINTR(func() (int, error) { return unix.Getdents(int(d), buf) })
		if err != nil {
			return nil, err
		}
		if n == 0 {
			return ents, nil
		}
		ents = appendDirents(ents, buf[:n])
	}
}

// appendDirents reads records of: inode 8 bytes, offset 8, record length 2,
// type 1, name up to a NUL. The names share one string.
func appendDirents(ents []dirent, buf []byte) []dirent {
	all := string(buf)
	ents = slices.Grow(ents, len(buf)/40) // about the minimum size of a record
	for pos := 0; pos+19 <= len(buf); {
		reclen := int(binary.NativeEndian.Uint16(buf[pos+16:]))
		name := all[pos+19 : pos+reclen]
		if i := strings.IndexByte(name, 0); i >= 0 {
			name = name[:i]
		}
		if name != "." && name != ".." {
			ents = append(ents, dirent{name: name, kind: direntKind(buf[pos+18])})
		}
		pos += reclen
	}
	return ents
}

func direntKind(t byte) fileKind {
	switch t {
	case unix.DT_REG:
		return isFile
	case unix.DT_DIR:
		return isDir
	case unix.DT_LNK:
		return isLink
	case unix.DT_UNKNOWN:
		return isUnknown
	}
	return isSpecial
}

func statOf(st *unix.Stat_t) fileStat {
	s := fileStat{
		mode: st.Mode & modeMask, size: st.Size, ino: st.Ino, dev: uint64(st.Dev),
		mtime: st.Mtim.Nano(), ctime: st.Ctim.Nano(), links: uint64(st.Nlink), uid: int64(st.Uid),
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		s.kind = isFile
	case unix.S_IFDIR:
		s.kind = isDir
	case unix.S_IFLNK:
		s.kind = isLink
	default:
		s.kind = isSpecial
	}
	return s
}

// openedFile is a file opened for reading. It bypasses os.File, whose poller
// and finalizer cost as much as reading a small file.
type openedFile struct{ fd int }

func (f *openedFile) Read(p []byte) (int, error) {
	n, err := retryEINTR(func() (int, error) { return unix.Read(f.fd, p) })
	switch {
	case err != nil:
		return 0, err
	case n == 0 && len(p) > 0:
		return 0, io.EOF
	}
	return n, nil
}

func (f *openedFile) rewind() error {
	_, err := unix.Seek(f.fd, 0, io.SeekStart)
	return err
}

func (f *openedFile) stat() (fileStat, error) {
	var st unix.Stat_t
	err := unix.Fstat(f.fd, &st)
	return statOf(&st), err
}

// attributes reports whether the file has extended attributes that belong to it. The
// label that a security module gives to every file does not count.
func (f *openedFile) attributes() bool {
	var buf [256]byte
	n, err := retryEINTR(func() (int, error) { return unix.Flistxattr(f.fd, buf[:]) })
	if err != nil {
		return err == unix.ERANGE // more names than fit
	}
	for name := range strings.SplitSeq(string(buf[:n]), "\x00") {
		if name != "" && name != "security.selinux" {
			return true
		}
	}
	return false
}

func (f *openedFile) close() { unix.Close(f.fd) }

// stampClock returns the time that the kernel would stamp on a file now. It
// moves in ticks: two writes within a tick get the same stamp.
func stampClock() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &ts); err != nil {
		return 0 // treat every file as just written
	}
	return ts.Nano()
}

func retryEINTR(fn func() (int, error)) (int, error) {
	for {
		n, err := fn()
		if err != unix.EINTR {
			return n, err
		}
	}
}

// isGone reports whether an error means that a name vanished.
func isGone(err error) bool { return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESTALE) }

// isSwapped reports whether an error means that the kind of a name has changed since
// it was listed.
func isSwapped(err error) bool {
	return errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.EXDEV) ||
		errors.Is(err, unix.ENXIO) || errors.Is(err, unix.EINVAL)
}
