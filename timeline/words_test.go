package timeline_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stet-dev/stet/timeline"
)

func TestWords(t *testing.T) {
	for d, want := range map[time.Duration]string{
		1500 * time.Microsecond: "2ms", 2340 * time.Millisecond: "2.3s", 41 * time.Second: "41s", 4 * time.Minute: "4m",
		90 * time.Second: "1m30s", 2 * time.Hour: "2h", 2*time.Hour + 10*time.Minute: "2h10m", time.Hour + time.Second: "1h0m1s",
	} {
		if got := timeline.DurationText(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
	for n, want := range map[int64]string{-1: "", 0: "", 999: "999", 12_340: "12.3k", 999_949: "999.9k", 999_950: "1.0M", 2_500_000: "2.5M"} {
		if got := timeline.TokenText(n); got != want {
			t.Errorf("%d tokens: %q, want %q", n, got, want)
		}
	}
	for usd, want := range map[float64]string{0: "", 0.001: "<$0.01", 0.12: "$0.12", 3: "$3.00"} {
		if got := timeline.CostText(&usd); got != want {
			t.Errorf("%v: %q, want %q", usd, got, want)
		}
	}
	cost := 0.12
	all := timeline.Spent{Model: "opus-5-20260501", Input: 12_000, Output: 340, CostUSD: &cost, Duration: 41 * time.Second}
	if got := strings.Join(all.Words(), " · "); got != "opus-5 · 12.3k tokens · $0.12 · 41s" {
		t.Error(got)
	}
	if got := (timeline.Spent{}).Words(); got != nil {
		t.Errorf("nothing is known: %q", got)
	}
}
