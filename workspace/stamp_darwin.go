package workspace

import (
	"io/fs"
	"syscall"
)

// changeStamp returns when the inode changed last, and its number.
func changeStamp(info fs.FileInfo) (ctime int64, ino uint64) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Ctimespec.Nano(), st.Ino
	}
	return info.ModTime().UnixNano(), 0
}
