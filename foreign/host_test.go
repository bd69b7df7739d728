package foreign_test

import (
	"testing"

	"github.com/stet-dev/stet/foreign"
)

func TestConnectQuotesForAShell(t *testing.T) {
	for _, c := range []struct {
		command    []string
		line, ours string
	}{
		{[]string{"/usr/bin/stet", "hook", "codex"}, "/usr/bin/stet hook codex Stop", " hook codex Stop"},
		{[]string{"/My Programs/it's $HOME", "hook", "pi"}, `'/My Programs/it'\''s $HOME' hook pi Stop`, " hook pi Stop"},
		{[]string{"stet"}, "stet Stop", "stet Stop"},
		{[]string{"", "a;b"}, "'' 'a;b' Stop", " 'a;b' Stop"},
	} {
		connect := foreign.Connect{Command: c.command}
		if got := connect.Line("Stop"); got != c.line {
			t.Errorf("line: got %s, want %s", got, c.line)
		}
		if got := connect.Ours("Stop"); got != c.ours {
			t.Errorf("ours: got %q, want %q", got, c.ours)
		}
	}
}
