package cli

import "testing"

func TestEdits(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"log", "log", 0}, {"lgo", "log", 1}, {"rewnd", "rewind", 1}, {"", "ls", 2}, {"ls", "", 2}, {"statsu", "status", 1}, {"undo", "redo", 2}} {
		if got := edits(c.a, c.b); got != c.want {
			t.Errorf("%q to %q: got %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
