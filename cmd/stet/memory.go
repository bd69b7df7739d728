package main

import (
	"os"
	"runtime"
	"runtime/debug"
)

// unhurried is the heap size below which no garbage collection runs. Most verbs end
// before they reach it, and a collection would cost more than it frees: it scans
// everything that the libraries allocate at their start.
const unhurried = 32 << 20

// collectUnhurriedly delays the first garbage collection. It respects GOGC and
// GOMEMLIMIT.
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
		if debug.SetMemoryLimit(-1) == unhurried { // else the verb has set its own
			debug.SetMemoryLimit(limit)
		}
	}, 0)
}
