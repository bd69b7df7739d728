package shortcut

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/agents"
	"github.com/stet-dev/stet/foreign/spool"
)

func TestParse(t *testing.T) {
	home := t.TempDir()
	env := func(pairs ...string) func(string) string {
		return func(name string) string {
			for i := 0; i < len(pairs); i += 2 {
				if pairs[i] == name {
					return pairs[i+1]
				}
			}
			return ""
		}
	}
	config := filepath.Join(home, "with-settings", ".config", "stet")
	if err := os.MkdirAll(config, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(config, "config.toml"), []byte("store = \"/elsewhere\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		env  func(string) string
		want string // directory of the spool, "" for the usual way
	}{
		{"hook claude-code PreToolUse", env("HOME", home), home + "/.local/share/stet.hooks"},
		{"hook claude-code PreToolUse", env("HOME", home, "XDG_DATA_HOME", "/data"), "/data/stet.hooks"},
		{"hook codex PostToolUse", env("STET_STORE", "/s"), "/s.hooks"},
		{"--store /x hook gemini AfterTool", env("STET_STORE", "/s"), "/x.hooks"},
		{"hook claude-code PreToolUse", env("HOME", filepath.Join(home, "with-settings")), ""},
		{"hook claude-code PreToolUse", env("HOME", home, "STET_CONFIG", "/c"), ""},
		{"hook claude-code PreToolUse", env("STET_STORE", "relative"), ""},
		{"hook claude-code PreToolUse", env("STET_STORE", "postgres://h/db"), ""},
		{"hook claude-code PreToolUse", env(), ""},
		{"hook claude-code UserPromptSubmit", env("STET_STORE", "/s"), ""},
		{"hook claude-code Stop", env("STET_STORE", "/s"), ""},
		{"hook pi tool_call", env("STET_STORE", "/s"), ""},
		{"hook --late claude-code PreToolUse", env("STET_STORE", "/s"), ""},
		{"version", env("STET_STORE", "/s"), ""},
		{"", env("STET_STORE", "/s"), ""},
	} {
		h, ok := parse(strings.Fields(c.args), c.env)
		if ok != (c.want != "") || ok && h.dir != c.want {
			t.Errorf("%s: %q, %v, want %q", c.args, h.dir, ok, c.want)
		}
	}
}

// What the shortcut notes is what the spool keeps the usual way, and means to the adapter
// what this package says.
func TestNote(t *testing.T) {
	payload := `{"session_id":"s","cwd":"/w","hook_event_name":"EVENT","tool_use_id":"c","tool_name":"x","tool_input":{},"agent_id":"a"}`
	for agent, events := range inner {
		for event, kind := range events {
			dir, at := t.TempDir(), time.UnixMilli(1_700_000_000_000)
			adapter, err := agents.Find(agent)
			if err != nil {
				t.Fatal(err)
			}
			data := []byte(strings.ReplaceAll(payload, "EVENT", event))
			e, err := adapter.Event(event, data)
			if err != nil || int(e.Kind) != kind || e.Session != "s" || e.Workspace != "/w" {
				t.Errorf("%s %s is %+v, %v", agent, event, e, err)
			}
			h := hook{dir: dir, agent: agent, event: event, kind: kind}
			if h.note(data, at) {
				t.Errorf("%s %s: noted without a session", agent, event)
			}
			s := spool.Open(dir, agent, "s")
			if err := s.Add("start", foreign.Event{Kind: foreign.TurnStart, Session: "s"}, at); err != nil {
				t.Fatal(err)
			}
			if !h.note(data, at) {
				t.Errorf("%s %s: not noted", agent, event)
			}
			if err := s.Add(event, e, at); err != nil {
				t.Fatal(err)
			}
			turn, err := s.Turn(context.Background())
			if err != nil || len(turn.Events) != 3 {
				t.Fatalf("%s %s: %+v, %v", agent, event, turn, err)
			}
			short, usual := turn.Events[1], turn.Events[2]
			if short.Kind != usual.Kind || short.Name != usual.Name || !short.Time.Equal(usual.Time) || short.Session != usual.Session ||
				short.Workspace != usual.Workspace || string(short.Payload) != string(usual.Payload) || !short.Bare {
				t.Errorf("%s %s: %+v, the usual way %+v", agent, event, short, usual)
			}
		}
	}
}

func TestWhatIsNotNoted(t *testing.T) {
	dir := t.TempDir()
	s := spool.Open(dir, "claude-code", "s")
	if err := s.Add("start", foreign.Event{Kind: foreign.TurnStart}, time.Now()); err != nil {
		t.Fatal(err)
	}
	h := hook{dir: dir, agent: "claude-code", event: "PreToolUse", kind: toolStart}
	for _, payload := range []string{
		"", "{", "[]", `{"session_id":7}`, `{"session_id":"s"}`, `{"session_id":"s","hook_event_name":"Stop"}`,
		`{"session_id":"../s","hook_event_name":"PreToolUse"}`, `{"session_id":"other","hook_event_name":"PreToolUse"}`,
		`{"session_id":"s","hook_event_name":"PreToolUse","x":"` + strings.Repeat("x", maxPayload) + `"}`,
	} {
		if h.note([]byte(payload), time.Now()) {
			t.Errorf("noted: %.60s", payload)
		}
	}
	if turn, err := s.Turn(context.Background()); err != nil || len(turn.Events) != 1 {
		t.Errorf("got %+v, %v", turn, err)
	}
}

func TestInputIsPassedOn(t *testing.T) {
	in := readAll(strings.NewReader("hello"))
	if data, ok := in.within(time.Hour); !ok || string(data) != "hello" {
		t.Errorf("got %q, %v", data, ok)
	}
	read = in
	defer func() { read = nil }()
	var out strings.Builder
	if n, err := io.Copy(&out, Stdin(os.Stdin)); n != 5 || err != nil || out.String() != "hello" {
		t.Errorf("got %q, %v", out.String(), err)
	}
	if given := strings.NewReader("x"); Stdin(given) != given {
		t.Error("another input was replaced")
	}
}

func TestAbsolute(t *testing.T) {
	for _, c := range []struct {
		goos, path string
		want       bool
	}{
		{"linux", "/s", true}, {"linux", "s", false}, {"linux", `C:\s`, false},
		{"windows", `C:\s`, true}, {"windows", "C:/s", true}, {"windows", "C:s", false}, {"windows", "/s", false}, {"windows", `\\host\s`, false}, {"windows", "", false},
	} {
		if got := absolute(c.goos, c.path); got != c.want {
			t.Errorf("%s %q: %v", c.goos, c.path, got)
		}
	}
}
