//go:build unix

package testenv

import (
	"syscall"
	"testing"
)

// Mkfifo makes a FIFO, or skips the test where there are none.
func Mkfifo(tb testing.TB, path string, mode uint32) {
	tb.Helper()
	if err := syscall.Mkfifo(path, mode); err != nil {
		tb.Fatal(err)
	}
}
