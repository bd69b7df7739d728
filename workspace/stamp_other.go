//go:build !linux && !darwin

package workspace

import "io/fs"

// changeStamp returns a substitute for the inode's change time, which this system
// does not provide: an edit that keeps size and modification time is missed.
func changeStamp(info fs.FileInfo) (ctime int64, ino uint64) {
	return info.ModTime().UnixNano(), 0
}
