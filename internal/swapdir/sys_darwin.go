//go:build !portable

package swapdir

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// openPath opens a directory that can be read: the system has no descriptors that only
// find names.
const openPath = unix.O_RDONLY

// openBeneath opens the directory at a path below another one, as dirFlags say, and
// returns ENOTDIR if any name on the way is a symbolic link.
func openBeneath(dir int, path string) (int, error) {
	// The flag refuses links in all names; together with O_NOFOLLOW it is invalid.
	fd, err := unix.Openat(dir, path, dirFlags&^unix.O_NOFOLLOW|unix.O_NOFOLLOW_ANY, 0)
	if errors.Is(err, unix.ELOOP) {
		err = unix.ENOTDIR
	}
	return fd, err
}

// exchange lets two names trade places.
func exchange(fromDir int, from string, toDir int, to string) error {
	return unsupported(unix.RenameatxNp(fromDir, from, toDir, to, unix.RENAME_SWAP))
}

// renameNew renames, and returns EEXIST if the new name is taken.
func renameNew(fromDir int, from string, toDir int, to string) error {
	return unsupported(unix.RenameatxNp(fromDir, from, toDir, to, unix.RENAME_EXCL))
}

// unsupported words what a file system answers to a flag that it does not know.
func unsupported(err error) error {
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.ENOSYS) {
		return errors.ErrUnsupported
	}
	return err
}

// createUnnamed does not exist here: files are created in the staging directory.
func createUnnamed(int) (int, error) { return -1, errors.ErrUnsupported }

// nameIn is never called, since createUnnamed creates nothing.
func nameIn(int, int, string) error { return errors.ErrUnsupported }

// chmodPath changes the mode of a directory that was opened with openPath.
func chmodPath(fd int, mode uint32) error { return unix.Fchmod(fd, mode) }

// flush makes a file, or the names in a directory, durable: fsync leaves them in the cache
// of the disk. Servers and some file systems know only fsync.
func flush(fd int) error {
	_, err := unix.FcntlInt(uintptr(fd), unix.F_FULLFSYNC, 0)
	if errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.ENOTTY) || errors.Is(err, unix.EINVAL) {
		return unix.Fsync(fd)
	}
	return err
}

// flushesAll is whether flushAll saves the flush of each file.
const flushesAll = false

// flushAll does nothing: sync does not wait here, and each file is made durable by itself.
func flushAll(int) (arrived bool, err error) { return false, nil }

func toStat(st *unix.Stat_t) stat {
	return stat{
		dev: uint64(st.Dev), ino: st.Ino, size: st.Size, mtime: unix.TimespecToNsec(st.Mtim),
		mode: uint32(st.Mode), dir: st.Mode&unix.S_IFMT == unix.S_IFDIR, uid: int(st.Uid), gid: int(st.Gid),
	}
}

// stampClock returns a time no later than the stamp of a file written now, whose clock may
// lag behind by a tick.
func stampClock() int64 { return time.Now().Add(-20 * time.Millisecond).UnixNano() }
