//go:build unix

package testenv

import (
	"os"
	"syscall"
	"testing"
)

// Inode returns the number of the file at a path, of a link itself.
func Inode(tb testing.TB, path string) uint64 {
	tb.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		tb.Fatal(err)
	}
	return info.Sys().(*syscall.Stat_t).Ino
}
