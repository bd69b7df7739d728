// Package testenv tells tests how much to do: the short figures of every change
// or, with STET_LONG=1 as `make test-long` sets it, the long ones.
package testenv

import "os"

// raceShare is the part of the short figures that is run under the race
// detector: it slows everything down many times and looks for something else.
const raceShare = 8

// Long reports whether the long figures were asked for.
func Long() bool { return os.Getenv("STET_LONG") == "1" }

// Race reports whether the race detector is on.
func Race() bool { return raceEnabled }

// Scale returns short or, in a long run, long. Under the race detector short is
// reduced.
func Scale(short, long int) int {
	switch {
	case Long():
		return long
	case raceEnabled:
		return max(1, short/raceShare)
	}
	return short
}
