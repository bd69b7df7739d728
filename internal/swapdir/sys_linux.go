//go:build !portable

package swapdir

import (
	"errors"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// What each Unix system has in a file of its own. Calls that it cannot do return
// errors.ErrUnsupported, and the callers find another way.

// openPath is the flag that opens a directory only to find names in it, which needs no
// permission to read it.
const openPath = unix.O_PATH

// openBeneath opens the directory at a path below another one, as dirFlags say, and
// returns ENOTDIR if any name on the way is a symbolic link.
func openBeneath(dir int, path string) (int, error) {
	fd, err := unix.Openat2(dir, path, &unix.OpenHow{
		Flags:   dirFlags,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	switch {
	case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EPERM), errors.Is(err, unix.EINVAL):
		return -1, errors.ErrUnsupported // an old kernel, or a sandbox that does not know the call
	case errors.Is(err, unix.ELOOP):
		return -1, unix.ENOTDIR // as opening name by name has it
	}
	return fd, err
}

// exchange lets two names trade places.
func exchange(fromDir int, from string, toDir int, to string) error {
	return unsupported(unix.Renameat2(fromDir, from, toDir, to, unix.RENAME_EXCHANGE))
}

// renameNew renames, and returns EEXIST if the new name is taken.
func renameNew(fromDir int, from string, toDir int, to string) error {
	return unsupported(unix.Renameat2(fromDir, from, toDir, to, unix.RENAME_NOREPLACE))
}

// unsupported words what a file system answers to a flag that it does not know.
func unsupported(err error) error {
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		return errors.ErrUnsupported
	}
	return err
}

// createUnnamed creates a file without a name, laid out as one of the directory.
func createUnnamed(dir int) (int, error) {
	return unix.Openat(dir, ".", unix.O_WRONLY|unix.O_TMPFILE|unix.O_CLOEXEC, 0o600)
}

// nameIn gives a file without a name one in a directory.
func nameIn(fd, dir int, name string) error {
	err := unix.Linkat(fd, "", dir, name, unix.AT_EMPTY_PATH)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EPERM) { // older kernels let only root do that
		err = unix.Linkat(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(fd), dir, name, unix.AT_SYMLINK_FOLLOW)
	}
	return err
}

// chmodPath changes the mode of a directory that was opened with openPath.
func chmodPath(fd int, mode uint32) error {
	// A descriptor of a directory that may not be read can only be named so.
	return unix.Chmod("/proc/self/fd/"+strconv.Itoa(fd), mode)
}

// flush makes a file, or the names in a directory, durable.
func flush(fd int) error { return unix.Fsync(fd) }

func toStat(st *unix.Stat_t) stat {
	return stat{
		dev: st.Dev, ino: st.Ino, size: st.Size, mtime: unix.TimespecToNsec(st.Mtim),
		mode: st.Mode, dir: st.Mode&unix.S_IFMT == unix.S_IFDIR, uid: int(st.Uid), gid: int(st.Gid),
	}
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

// flushesAll is whether flushAll saves the flush of each file.
const flushesAll = true

// flushAll makes everything durable on the file system that a descriptor is on, and
// reports whether all of it is known to have arrived.
func flushAll(fd int) (arrived bool, err error) {
	if err := unix.Syncfs(fd); err != nil {
		return false, err
	}
	return syncfsTells() && flushes(fd), nil
}

// syncfsTells reports whether syncfs of this kernel returns the errors of all
// that was written since the directory was opened. Before 5.8 it returned none of
// a file's content, and before 5.17 not all of a file system's own.
var syncfsTells = sync.OnceValue(func() bool {
	var u unix.Utsname
	return unix.Uname(&u) == nil && releaseFrom(unix.ByteSliceToString(u.Release[:]), 5, 17)
})

// releaseFrom reports whether a kernel's release is at least the one given.
func releaseFrom(release string, major, minor int) bool {
	first, rest, _ := strings.Cut(release, ".")
	second, _, _ := strings.Cut(rest, ".")
	second = second[:len(second)-len(strings.TrimLeft(second, "0123456789"))]
	x, err := strconv.Atoi(first)
	if err != nil {
		return false
	}
	y, err := strconv.Atoi(second)
	return err == nil && (x > major || x == major && y >= minor)
}

// flushes reports whether a descriptor is on a file system whose syncfs flushes the
// disk as fsync does. Those that pass files on, over a network or to a process, may
// not.
func flushes(fd int) bool {
	var st unix.Statfs_t
	if err := unix.Fstatfs(fd, &st); err != nil {
		return false
	}
	switch uint32(st.Type) {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC, unix.TMPFS_MAGIC:
		return true
	}
	return false
}
