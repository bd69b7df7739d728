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

// usual undoes what importing the package did.
func usual(t *testing.T) {
	t.Helper()
	runtime.GC() // the cleanup of an earlier call runs now, if at all
	debug.SetGCPercent(100)
	debug.SetMemoryLimit(math.MaxInt64)
}

var kept [][]byte // what the test uses

// TestCollectionsComeBack uses more memory than is left uncollected.
func TestCollectionsComeBack(t *testing.T) {
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	usual(t)
	percent, limit := settings()
	collectUnhurriedly()
	if got, _ := settings(); got == percent {
		t.Fatalf("collected at %d%% as before", got)
	}
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if len(kept) < 64 {
			kept = append(kept, make([]byte, 1<<20))
		}
		if gotPercent, gotLimit := settings(); gotPercent == percent && gotLimit == limit {
			return
		}
	}
	gotPercent, gotLimit := settings()
	t.Errorf("after %d MiB: %d%% and a limit of %d, want %d%% and %d", len(kept), gotPercent, gotLimit, percent, limit)
}

func TestWhoAskedForOtherCollectionsGetsThem(t *testing.T) {
	for _, name := range []string{"GOGC", "GOMEMLIMIT"} {
		t.Setenv("GOGC", "")
		t.Setenv("GOMEMLIMIT", "")
		t.Setenv(name, "70")
		usual(t)
		percent, limit := settings()
		collectUnhurriedly()
		if gotPercent, gotLimit := settings(); gotPercent != percent || gotLimit != limit {
			t.Errorf("with %s: %d%% and a limit of %d, want %d%% and %d", name, gotPercent, gotLimit, percent, limit)
		}
	}
}
