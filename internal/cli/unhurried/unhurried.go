// Package unhurried collects garbage less often while the program needs little memory. It
// promises that a verb which needs little is never collected, that the heap may grow to
// 32 MiB before each collection, and that a program which needs more is collected as usual.
//
// Packages allocate close to the 4 MiB at which Go collects for the first time while they
// are initialised, so this has to come before them: a collection at the beginning of main
// took 4 of the 34 ms of a small checkpoint on a busy machine. A server whose data take a few
// MiB would be collected whenever it has allocated as much again: that took a sixth of its
// processor time under load. Go initialises packages with few imports early, so importing
// it is all:
//
//	import _ "github.com/stet-dev/stet/internal/cli/unhurried"
package unhurried

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// unhurried is the heap size below which no garbage collection runs. Most verbs end
// before they reach it, and a collection would cost more than it frees: it scans
// everything that the libraries allocate at their start.
const unhurried = 32 << 20

// smallest is the heap at which Go collects for the first time at 100 percent.
const smallest = 4 << 20

var started = collectUnhurriedly()

// collectUnhurriedly delays collections. It respects GOGC and GOMEMLIMIT, and returns nil
// if one of them is set.
func collectUnhurriedly() *collector {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return nil
	}
	c := &collector{usual: debug.SetGCPercent(-1), percent: -1, ended: make(chan struct{})}
	limit := debug.SetMemoryLimit(unhurried)
	c.after(func() bool {
		if debug.SetMemoryLimit(-1) == unhurried { // else the verb has set its own
			debug.SetMemoryLimit(limit)
		}
		return c.adjust()
	})
	return c
}

// collector adjusts how much the heap may grow.
type collector struct {
	usual   int           // percentage of growth that was set before
	percent int           // that is set now
	ended   chan struct{} // closed when it adjusts nothing any more
}

// after calls fn after the next collection, and adjust after all that follow, until one of
// them says that there is nothing more to do.
func (c *collector) after(fn func() bool) {
	type sentinel struct{ _ *int }
	runtime.AddCleanup(&sentinel{}, func(int) {
		if fn() {
			c.after(c.adjust)
		} else {
			close(c.ended)
		}
	}, 0)
}

// adjust sets the percentage with which the next collection begins at unhurried, or at
// twice the memory in use if that is more. It stops once others have set a percentage.
func (c *collector) adjust() (more bool) {
	percent := c.wanted(inUse())
	was := debug.SetGCPercent(percent)
	if was != c.percent {
		debug.SetGCPercent(was)
		return false
	}
	c.percent = percent
	return true
}

// wanted returns the percentage for so many bytes that live on the heap, and so many that are
// scanned besides. Go lets the heap grow by the percentage of both, and to that percentage of
// the smallest heap in any case.
func (c *collector) wanted(live, roots uint64) int {
	if c.usual < 0 || live >= unhurried {
		return c.usual
	}
	return max(c.usual, int(min((unhurried-live)*100/(live+roots+1), unhurried*100/smallest)))
}

// inUse returns what the last collection found.
func inUse() (live, roots uint64) {
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64(), s[1].Value.Uint64() + s[2].Value.Uint64()
}
