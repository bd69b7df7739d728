// Package testenv tells tests how much to do: the short figures of every change
// or, with STET_LONG=1 as `make test-long` sets it, the long ones.
package testenv

import "os"

// Long reports whether the long figures were asked for.
func Long() bool { return os.Getenv("STET_LONG") == "1" }

// Scale returns short or, in a long run, long.
func Scale(short, long int) int {
	if Long() {
		return long
	}
	return short
}
