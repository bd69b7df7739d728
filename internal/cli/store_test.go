package cli

import (
	"testing"
	"time"
)

// TestSettleTimeIsAnEighth adds up what verbs of one length give to compressing.
func TestSettleTimeIsAnEighth(t *testing.T) {
	for _, took := range []time.Duration{400 * time.Millisecond, 2 * time.Second, 8 * time.Second} {
		if got := settleTime(took); got != took/8 {
			t.Errorf("a verb of %v gives %v", took, got)
		}
	}
	if got := settleTime(time.Hour); got != time.Second {
		t.Errorf("a verb of an hour gives %v", got)
	}
	some := 0
	for range 8000 {
		switch got := settleTime(60 * time.Millisecond); got {
		case 0:
		case 25 * time.Millisecond:
			some++
		default:
			t.Fatalf("a short verb gives %v", got)
		}
	}
	if some < 700 || some > 1300 { // ten standard deviations
		t.Errorf("of 8000 short verbs %d compress, want about 1000", some)
	}
}
