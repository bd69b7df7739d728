package qwen_test

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/foreigntest"
	"github.com/stet-dev/stet/foreign/qwen"
)

const id = "9a9f7b55-a25c-473d-ab1c-d1a94bf6b9df"

func home(t testing.TB) foreign.Host {
	t.Helper()
	h := foreign.Host{Home: t.TempDir()}
	chats := filepath.Join(h.Home, ".qwen", "projects", "-workspace", "chats")
	data, err := os.ReadFile("testdata/session.jsonl")
	if err == nil {
		err = os.MkdirAll(chats, 0o700)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(chats, id+".jsonl"), data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return h
}

var kinds = map[string]foreign.EventKind{
	"UserPromptSubmit": foreign.TurnStart, "PreToolUse": foreign.ToolStart, "PostToolUse": foreign.ToolEnd,
	"SubagentStart": foreign.TaskStart, "SubagentStop": foreign.TaskEnd, "Stop": foreign.TurnEnd,
}

func payloads(t testing.TB) (out []foreigntest.Payload) {
	t.Helper()
	f, err := os.Open("testdata/events.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var e struct {
			Event   string
			Payload json.RawMessage
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		kind := kinds[e.Event]
		if strings.Contains(string(e.Payload), `"prompt":""`) {
			kind = foreign.NoEvent // a round of tools ended
		}
		out = append(out, foreigntest.Payload{Event: e.Event, JSON: e.Payload, Kind: kind})
	}
	if len(out) < 30 {
		t.Fatalf("%d payloads", len(out))
	}
	return out
}

func TestRecordedSession(t *testing.T) {
	foreigntest.Run(t, foreigntest.Config{
		Adapter: qwen.New(), Home: home, Lines: true, Payloads: payloads(t),
		Sessions: []foreigntest.Session{{
			ID: id, Workspace: "/workspace", Prompts: []string{"turn one: make a file", "turn two: change it", "turn three: use a helper"},
			Tools: []string{"write_file", "run_shell_command", "read_file", "edit", "run_shell_command", "agent"},
			Kinds: []foreign.Tool{foreign.EditTool, foreign.ShellTool, foreign.ReadTool, foreign.EditTool, foreign.ShellTool, foreign.TaskTool},
			Says:  "second done", Model: "fake-model", Tokens: true, Command: "qwen",
		}},
	})
}

func TestExitCode(t *testing.T) {
	s := foreign.Session{Agent: qwen.Name, ID: id, Path: "testdata/session.jsonl"}
	for turn, err := range qwen.New().Turns(context.Background(), s, "") {
		if err != nil {
			t.Fatal(err)
		}
		if call := turn.Steps[1].Call; call == nil || call.ExitCode == nil || *call.ExitCode != 0 || !call.Answered {
			t.Errorf("got %+v", call)
		}
		break
	}
}

func TestCutNamesItsOrigin(t *testing.T) {
	h, a, ctx := home(t), qwen.New(), context.Background()
	var session foreign.Session
	for s := range a.Sessions(ctx, h) {
		session = s
	}
	var second foreign.Turn
	for turn := range a.Turns(ctx, session, "") {
		if strings.HasPrefix(turn.Prompt, "turn two") {
			second = turn
		}
	}
	c, err := a.Cut(ctx, h, session, second)
	if err != nil || strings.Join(c.Command, " ") != "qwen --resume "+c.Session || c.Dir != "/workspace" {
		t.Fatalf("got %+v, %v", c, err)
	}
	if data, err := os.ReadFile(c.Created[0]); err != nil || strings.Count(string(data), `"sessionId":"`+c.Session+`"`) != strings.Count(string(data), "\n") {
		t.Errorf("some lines are not of the new session: %v", err)
	}
	for s := range a.SessionAt(ctx, h, c.Created[0]) {
		if s.ID != c.Session || s.ForkedFrom != id || s.ForkedAfter != second.ID {
			t.Errorf("got %+v", s)
		}
	}
}

func FuzzTurns(f *testing.F) {
	session := func(path string) foreign.Session { return foreign.Session{Agent: qwen.Name, ID: "s", Path: path} }
	foreigntest.FuzzTurns(f, qwen.New(), session, "testdata/session.jsonl")
}

func FuzzEvent(f *testing.F) { foreigntest.FuzzEvent(f, qwen.New(), payloads(f)...) }
