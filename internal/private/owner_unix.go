//go:build unix

package private

import (
	"io/fs"
	"os"
	"syscall"
)

const hasModes = true

// ofRoot tells whether a file belongs to root, and somebody else asks.
func ofRoot(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Uid == 0 && os.Geteuid() != 0
}
