// Package unhurried delays the first garbage collection of the program. It promises that a
// verb which needs little memory is never collected, and that one which needs more is
// collected as usual from then on.
//
// Packages allocate close to the 4 MiB at which Go collects for the first time while they
// are initialised, so this has to come before them: a collection at the beginning of main
// took 4 of the 34 ms of a small checkpoint on a busy machine. Go initialises packages with few imports early,
// so importing it is all:
//
//	import _ "github.com/stet-dev/stet/internal/cli/unhurried"
package unhurried

import (
	"os"
	"runtime"
	"runtime/debug"
)

// unhurried is the heap size below which no garbage collection runs. Most verbs end
// before they reach it, and a collection would cost more than it frees: it scans
// everything that the libraries allocate at their start.
const unhurried = 32 << 20

func init() { collectUnhurriedly() }

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
