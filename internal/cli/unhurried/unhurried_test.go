package unhurried

import (
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"
)

// settings returns the collector's percentage and limit.
func settings() (percent, limit uint64) {
	s := []metrics.Sample{{Name: "/gc/gogc:percent"}, {Name: "/gc/gomemlimit:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64(), s[1].Value.Uint64()
}

// end undoes what a call of collectUnhurriedly did.
func end(c *collector) {
	debug.SetMemoryLimit(math.MaxInt64)
	for ended := c == nil; !ended; {
		debug.SetGCPercent(1000) // which is never what it set
		runtime.GC()
		select {
		case <-c.ended:
			ended = true
		case <-time.After(time.Millisecond):
		}
	}
	debug.SetGCPercent(100)
}

var kept [][]byte // what the test uses

// eventually waits until a condition holds, and lets garbage be made meanwhile.
func eventually(what string, t *testing.T, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		_ = append([]byte(nil), make([]byte, 1<<20)...)
		if holds() {
			return
		}
	}
	percent, limit := settings()
	t.Fatalf("%s: %d%% and a limit of %d", what, percent, limit)
}

// TestCollectionsComeBack uses more memory than is left uncollected.
func TestCollectionsComeBack(t *testing.T) {
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	end(started)
	percent, limit := settings()
	c := collectUnhurriedly()
	defer end(c)
	if got, _ := settings(); got == percent {
		t.Fatalf("collected at %d%% as before", got)
	}
	eventually("small heap", t, func() bool {
		gotPercent, gotLimit := settings()
		return gotPercent > percent && gotPercent <= 800 && gotLimit == limit
	})
	for range 64 {
		kept = append(kept, make([]byte, 1<<20))
	}
	eventually("large heap", t, func() bool {
		gotPercent, gotLimit := settings()
		return gotPercent == percent && gotLimit == limit
	})
	kept = nil
	eventually("small again", t, func() bool {
		gotPercent, _ := settings()
		return gotPercent > percent
	})
	debug.SetGCPercent(70) // of somebody else
	runtime.GC()
	eventually("set by others", t, func() bool {
		gotPercent, _ := settings()
		return gotPercent == 70
	})
}

// The next collection is to begin at 32 MiB, by the rules of the runtime.
func TestWantedPercentage(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		usual       int
		live, roots uint64
		want        int
	}{
		{100, 0, 0, 800},
		{100, 1 * mib, 0, 800},
		{100, 8 * mib, 0, 299},
		{100, 8 * mib, 4 * mib, 199},
		{100, 24 * mib, 0, 100},
		{100, 32 * mib, 0, 100},
		{100, 1 << 40, 0, 100},
		{400, 16 * mib, 0, 400},
		{-1, 8 * mib, 0, -1},
	} {
		if got := (&collector{usual: c.usual}).wanted(c.live, c.roots); got != c.want {
			t.Errorf("%d%% usually, %d MiB live, %d of roots: %d%%, want %d%%", c.usual, c.live/mib, c.roots/mib, got, c.want)
		}
	}
}

func TestWhoAskedForOtherCollectionsGetsThem(t *testing.T) {
	for _, name := range []string{"GOGC", "GOMEMLIMIT"} {
		t.Setenv("GOGC", "")
		t.Setenv("GOMEMLIMIT", "")
		t.Setenv(name, "70")
		end(started)
		percent, limit := settings()
		collectUnhurriedly()
		if gotPercent, gotLimit := settings(); gotPercent != percent || gotLimit != limit {
			t.Errorf("with %s: %d%% and a limit of %d, want %d%% and %d", name, gotPercent, gotLimit, percent, limit)
		}
	}
}
