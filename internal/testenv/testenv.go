// Package testenv tells tests how much to do and what they can use.
//
// There are three sizes. `make test` runs the quick figures, `make check` the full
// ones (STET_FULL=1) and, under the race detector, the quick ones again, `make
// test-long` the long ones (STET_LONG=1).
package testenv

import "os"

// quickShare is the part of the full figures that a quick run does. The race
// detector slows everything down many times and looks for something else, so it
// runs the same part.
const quickShare = 8

// Long reports whether the long figures were asked for.
func Long() bool { return os.Getenv("STET_LONG") == "1" }

// Full reports whether the full figures were asked for, or the long ones.
func Full() bool { return os.Getenv("STET_FULL") == "1" || Long() }

// Quick reports whether a test does the least that still means something.
func Quick() bool { return !Full() || raceEnabled && !Long() }

// Race reports whether the race detector is on.
func Race() bool { return raceEnabled }

// Scale returns full, in a long run long, and in a quick run a part of full.
func Scale(full, long int) int { return Sizes(max(1, full/quickShare), full, long) }

// Sizes returns the figure of this run, where a part of the full one would mean
// too little or take too long.
func Sizes(quick, full, long int) int {
	switch {
	case Long():
		return long
	case Quick():
		return quick
	}
	return full
}
