package cli

import (
	"strings"
	"testing"
)

func TestPurgeCountsWhatIsLeft(t *testing.T) {
	for left, want := range map[int]string{0: "\n0 occurrences left\n", 1: "\n1 occurrence left\n", 2: "\n2 occurrences left\n"} {
		if text := purgedText(&purgeJSON{Left: left}); !strings.HasSuffix(text, want) {
			t.Errorf("%d left: %q, want %q", left, text, want)
		}
	}
}
