package hooks_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/internal/hooks"
)

func TestQuote(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"/usr/bin/stet", "hook", "qwen", "Stop"}, "/usr/bin/stet hook qwen Stop"},
		{[]string{"/opt/a b/stet", ""}, "'/opt/a b/stet' ''"},
		{[]string{"it's", "$x"}, `'it'\''s' '$x'`},
	} {
		if got := hooks.Quote(c.args); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}

func TestEntries(t *testing.T) {
	c := foreign.Connect{Command: []string{"/opt/a b/stet", "hook", "x"}}
	got := hooks.Entries(c, time.Second, hooks.Subscription{Event: "PreToolUse", Matcher: true, Timeout: 10 * time.Second})
	want := `{"matcher":"*","hooks":[{"type":"command","command":"'/opt/a b/stet' hook x PreToolUse","timeout":10}]}`
	if len(got) != 1 || got[0].Value != want || got[0].Ours != "hook x PreToolUse" {
		t.Errorf("got %+v", got)
	}
}

func TestPayloadWithoutSession(t *testing.T) {
	if _, err := hooks.Decode([]byte(`{"cwd":"/w"}`)); !errors.Is(err, foreign.ErrEvent) {
		t.Errorf("got %v", err)
	}
}
