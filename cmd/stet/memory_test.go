package main

import (
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

var kept [][]byte // what the test uses

// TestCollectionsComeBack uses more memory than is left uncollected.
func TestCollectionsComeBack(t *testing.T) {
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
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
		percent, limit := settings()
		collectUnhurriedly()
		if gotPercent, gotLimit := settings(); gotPercent != percent || gotLimit != limit {
			t.Errorf("with %s: %d%% and a limit of %d, want %d%% and %d", name, gotPercent, gotLimit, percent, limit)
		}
	}
}
