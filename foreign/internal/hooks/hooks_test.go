package hooks_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/internal/hooks"
)

func TestChange(t *testing.T) {
	c := foreign.Connect{Command: []string{"/opt/a b/stet", "hook", "x"}}
	tool := []hooks.Subscription{{Event: "PreToolUse", Tools: true, Timeout: 10 * time.Second}}
	for _, style := range []struct {
		hooks.Style
		want string
	}{
		{hooks.Style{Unit: time.Second, AllTools: "*"}, `{"matcher":"*","hooks":[{"type":"command","command":"'/opt/a b/stet' hook x PreToolUse","timeout":10}]}`},
		{hooks.Style{Unit: time.Millisecond, AllTools: ".*", Named: true}, `{"matcher":".*","hooks":[{"type":"command","name":"stet PreToolUse","command":"'/opt/a b/stet' hook x PreToolUse","timeout":10000}]}`},
	} {
		got, err := hooks.Change("/f", c, style.Style, tool)
		if err != nil || len(got.Hooks) != 1 || got.Hooks[0].Value != style.want || got.Hooks[0].Ours != " hook x PreToolUse" {
			t.Errorf("got %+v, %v", got, err)
		}
	}
	if _, err := hooks.Change("/f", foreign.Connect{}, hooks.Style{Unit: time.Second}, tool); !errors.Is(err, foreign.ErrSettings) {
		t.Errorf("without a command: got %v", err)
	}
}

func TestPayloadWithoutSession(t *testing.T) {
	if _, err := hooks.Decode([]byte(`{"cwd":"/w"}`)); !errors.Is(err, foreign.ErrEvent) {
		t.Errorf("got %v", err)
	}
}

// The end of a subagent lists the subagent as running; what continues are the others, and no
// shells.
func TestBackgroundTasks(t *testing.T) {
	for payload, want := range map[string]int{
		`{"session_id":"s","agent_id":"a","background_tasks":[{"id":"a","status":"running"},{"id":"b"}]}`:                   1,
		`{"session_id":"s","background_tasks":[{"id":"a"},{"id":7},"of another form",{}]}`:                                  4,
		`{"session_id":"s","background_tasks":[{"id":"a","type":"shell","status":"running"},{"id":"b","type":"subagent"}]}`: 1,
		`{"session_id":"s","agent_id":"a"}`: 0,
	} {
		p, err := hooks.Decode([]byte(payload))
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Event(foreign.TaskEnd, nil).Background; got != want {
			t.Errorf("%s: %d tasks continue, want %d", payload, got, want)
		}
	}
}

// A compaction goes on in the middle of a turn, and the session does not begin again.
func TestACompactionBeginsNoSession(t *testing.T) {
	for source, want := range map[string]foreign.EventKind{
		"compact": foreign.NoEvent, "startup": foreign.SessionStart, "resume": foreign.SessionStart, "clear": foreign.SessionStart, "": foreign.SessionStart,
	} {
		p, err := hooks.Decode([]byte(`{"session_id":"s","source":"` + source + `"}`))
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Event(hooks.Kind("SessionStart"), nil).Kind; got != want {
			t.Errorf("%q: got %v, want %v", source, got, want)
		}
	}
}
