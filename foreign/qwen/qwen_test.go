package qwen_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/foreigntest"
	"github.com/stet-dev/stet/foreign/qwen"
)

const id = "9a9f7b55-a25c-473d-ab1c-d1a94bf6b9df"

func home(t testing.TB) foreign.Host {
	t.Helper()
	return foreigntest.Home(t, map[string]string{".qwen/projects/-workspace/chats/" + id + ".jsonl": "session.jsonl"})
}

var kinds = map[string]foreign.EventKind{
	"UserPromptSubmit": foreign.TurnStart, "PreToolUse": foreign.ToolStart, "PostToolUse": foreign.ToolEnd,
	"SubagentStart": foreign.TaskStart, "SubagentStop": foreign.TaskEnd, "Stop": foreign.TurnEnd,
}

func payloads(t testing.TB) []foreigntest.Payload {
	t.Helper()
	return foreigntest.PayloadLines(t, func(event string, payload []byte) foreign.EventKind {
		if strings.Contains(string(payload), `"prompt":""`) {
			return foreign.NoEvent // a round of tools ended
		}
		return kinds[event]
	})
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

// A copy that went on and was cut again is a fork of the copy.
func TestCutOfACutNamesTheCut(t *testing.T) {
	h, a, ctx := home(t), qwen.New(), context.Background()
	at := func(id string) foreign.Session {
		t.Helper()
		for s := range a.Sessions(ctx, h) {
			if s.ID == id {
				return s
			}
		}
		t.Fatalf("no session %s", id)
		return foreign.Session{}
	}
	cut := func(s foreign.Session, turn foreign.Turn) foreign.Continuation {
		t.Helper()
		c, err := a.Cut(ctx, h, s, turn)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	turns := func(s foreign.Session) (all []foreign.Turn) {
		for turn := range a.Turns(ctx, s, "") {
			all = append(all, turn)
		}
		return all
	}
	first := cut(at(id), turns(at(id))[0])
	lines, err := os.ReadFile(first.Created[0])
	if err != nil {
		t.Fatal(err)
	}
	foreigntest.Put(t, first.Created[0], string(lines)+fmt.Sprintf(`{"uuid":"new-u","parentUuid":%q,"sessionId":%q,"timestamp":"2026-11-16T11:56:16.000Z","type":"user","cwd":"/workspace","message":{"role":"user","parts":[{"text":"go on"}]}}
{"uuid":"new-a","parentUuid":"new-u","sessionId":%q,"timestamp":"2026-11-16T11:56:18.000Z","type":"assistant","cwd":"/workspace","message":{"role":"model","parts":[{"text":"Done."}]}}
`, turns(at(id))[0].Cut, first.Session, first.Session))
	own := turns(at(first.Session))[1]
	second := cut(at(first.Session), own)
	if made := at(second.Session); made.ForkedFrom != first.Session || made.ForkedAfter != own.ID {
		t.Errorf("got %+v, want a fork of %s after %s", made, first.Session, own.ID)
	}
	third := cut(at(first.Session), turns(at(first.Session))[0])
	if made := at(third.Session); made.ForkedFrom != id {
		t.Errorf("got %+v, want a fork of %s", made, id)
	}
}

func FuzzTurns(f *testing.F) {
	session := func(path string) foreign.Session { return foreign.Session{Agent: qwen.Name, ID: "s", Path: path} }
	foreigntest.FuzzTurns(f, qwen.New(), session, "testdata/session.jsonl")
}

func FuzzEvent(f *testing.F) { foreigntest.FuzzEvent(f, qwen.New(), payloads(f)...) }
