package recorder

import (
	"slices"
	"testing"
)

// A tool that names an empty path names nothing, not its directory.
func TestToolsThatNameAnEmptyPath(t *testing.T) {
	if got := within("/ws", "/ws/sub", []string{"", "a"}); !slices.Equal(got, []string{"sub/a"}) {
		t.Errorf("got %q, want only sub/a", got)
	}
}
