package spelling_test

import (
	"strings"
	"testing"

	"github.com/stet-dev/stet/internal/spelling"
)

func TestEdits(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"log", "log", 0}, {"lgo", "log", 1}, {"rewnd", "rewind", 1}, {"", "ls", 2}, {"ls", "", 2}, {"statsu", "status", 1}, {"undo", "redo", 2}} {
		if got := spelling.Edits(c.a, c.b); got != c.want {
			t.Errorf("%q to %q: got %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestNearest(t *testing.T) {
	for word, want := range map[string]string{
		"limt": "limit", "curosr": "cursor", "limit": "limit", "id": "", "x": "", "": "", strings.Repeat("limit", 1<<20): "",
	} {
		if got := spelling.Nearest(word, []string{"cursor", "limit", "limits", "after"}); got != want {
			t.Errorf("%.20q: got %q, want %q", word, got, want)
		}
	}
}
