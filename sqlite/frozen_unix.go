//go:build unix

package sqlite

import (
	"os"

	"golang.org/x/sys/unix"
)

// indexInUse reports whether any connection has the index of the log open: each one
// locks the byte after the library's own locks.
func indexInUse(f *os.File) bool {
	lock := unix.Flock_t{Type: unix.F_WRLCK, Start: 128, Len: 1}
	err := unix.FcntlFlock(f.Fd(), unix.F_GETLK, &lock)
	return err == nil && lock.Type != unix.F_UNLCK
}
