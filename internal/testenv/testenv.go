// Package testenv provides the size of a test run and the parts available to it.
//
// There are three sizes. `make test` runs the quick figures, `make check` the full
// ones (STET_FULL=1) and, under the race detector, the quick ones again, `make
// test-long` the long ones (STET_LONG=1).
package testenv

import (
	"os"
	"testing"
)

// quickShare is the fraction of the full figures that a quick run does. The race
// detector is slow and looks for other errors, so it runs the same fraction.
const quickShare = 16

// Long reports whether the long figures are requested.
func Long() bool { return os.Getenv("STET_LONG") == "1" }

// Full reports whether the full or long figures are requested.
func Full() bool { return os.Getenv("STET_FULL") == "1" || Long() }

// OnlyFull skips a test that takes too long for make test and has no smaller size.
func OnlyFull(t testing.TB) {
	t.Helper()
	if !Full() {
		t.Skip("make check runs this")
	}
}

// Quick reports whether a test runs the smallest useful figures.
func Quick() bool { return !Full() || raceEnabled && !Long() }

// Race reports whether the race detector is on.
func Race() bool { return raceEnabled }

// Scale returns full, in a long run long, and in a quick run a part of full.
func Scale(full, long int) int { return Sizes(max(1, full/quickShare), full, long) }

// Sizes returns the figure of this run, for tests where a fraction of the full one
// would be too small or take too long.
func Sizes(quick, full, long int) int {
	switch {
	case Long():
		return long
	case Quick():
		return quick
	}
	return full
}
