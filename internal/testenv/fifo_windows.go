package testenv

import "testing"

// Mkfifo makes a FIFO, or skips the test where there are none.
func Mkfifo(tb testing.TB, path string, _ uint32) {
	tb.Helper()
	tb.Skipf("there are no FIFOs on Windows to make %s", path)
}
