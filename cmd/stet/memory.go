package main

import (
	"os"
	"runtime"
	"runtime/debug"
)

// unhurried is the memory below which nothing is collected. Most verbs end before
// they have used it, and a collection would cost them more than it gives: it goes
// through all that the libraries made at their start.
const unhurried = 32 << 20

// collectUnhurriedly puts the first collection off. From then on memory is
// collected as ever. Who has asked for something else gets that.
func collectUnhurriedly() {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	percent := debug.SetGCPercent(-1)
	limit := debug.SetMemoryLimit(unhurried)
	type sentinel struct{ _ *int }
	first := &sentinel{}
	runtime.AddCleanup(first, func(int) {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	}, 0)
}
