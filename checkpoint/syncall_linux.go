package checkpoint

import (
	"io/fs"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// manySyncs is the number of files or directories from which the whole file
// system is written out at once: one by one, 1,000 of them took a second.
const manySyncs = 32

// syncAll writes out everything that the file system holds in memory. It reports
// whether all of it is known to have arrived; if it is not, each file has to be
// asked: this file system may not tell, and what failed may be another's file.
func (s *stageDir) syncAll() (arrived bool, err error) {
	if err := s.d.about("syncfs", s.name); err != nil {
		return false, err
	}
	if err := unix.Syncfs(s.fd); err != nil {
		return false, &fs.PathError{Op: "syncfs", Path: s.name, Err: err}
	}
	return syncfsTells() && s.known(), nil
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

// known reports whether the stage is on a file system whose syncfs flushes the
// disk as fsync does. Those that hand files to somebody else, over a network or to
// a process, need not.
func (s *stageDir) known() bool {
	var st unix.Statfs_t
	if err := unix.Fstatfs(s.fd, &st); err != nil {
		return false
	}
	switch uint32(st.Type) {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC, unix.TMPFS_MAGIC:
		return true
	}
	return false
}
