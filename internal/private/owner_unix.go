//go:build unix

package private

import (
	"io/fs"
	"os"
	"syscall"
)

const hasModes = true

// ofRoot reports whether a file belongs to root and the caller is another user.
func ofRoot(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Uid == 0 && os.Geteuid() != 0
}
