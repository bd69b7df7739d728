//go:build unix

package checkpoint

import (
	"os"
	"syscall"
)

// identity returns the device and inode of a directory, or zeros.
func identity(path string) (device, inode uint64) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, 0
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0
	}
	return uint64(st.Dev), st.Ino
}
