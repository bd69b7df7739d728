package codex_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/codex"
	"github.com/stet-dev/stet/foreign/foreigntest"
)

const (
	mainID = "01a1e43f-599f-7053-8add-d1d12d40e1ab"
	subID  = "01a1e43f-768f-7bf2-a132-b9d1fbc20477"
	forkID = "01a1e459-8ef0-7cc0-9e30-de658d29c456"
)

// home makes a home with the recorded sessions of a directory of testdata.
func home(name string) func(t testing.TB) foreign.Host {
	return func(t testing.TB) foreign.Host {
		t.Helper()
		dir := t.TempDir()
		if err := os.CopyFS(filepath.Join(dir, ".codex"), os.DirFS(filepath.Join("testdata", name))); err != nil {
			t.Fatal(err)
		}
		return foreign.Host{Home: dir}
	}
}

func mainSession() foreigntest.Session {
	return foreigntest.Session{
		ID: mainID, Workspace: "/workspace",
		Prompts: []string{"turn one: make a file", "turn two: change it", "turn three: use a helper"},
		Tools:   []string{"apply_patch", "exec_command", "apply_patch", "exec_command", "spawn_agent", "exec_command"},
		Kinds: []foreign.Tool{foreign.EditTool, foreign.ShellTool, foreign.EditTool, foreign.ShellTool,
			foreign.TaskTool, foreign.ShellTool},
		Says: "second done", Model: "gpt-5.1-codex", Tokens: true, Command: "codex",
	}
}

func plainSessions() []foreigntest.Session {
	return []foreigntest.Session{mainSession(), {
		ID: subID, Workspace: "/workspace", Parent: mainID, Prompts: []string{"helper"}, Tools: []string{"exec_command"},
		Says: "sub done", Model: "gpt-5.1-codex", Tokens: true,
	}}
}

func TestSuite(t *testing.T) {
	foreigntest.Run(t, foreigntest.Config{
		Adapter: codex.New(), Home: home("plain"), Lines: true, Payloads: payloads(t), Sessions: plainSessions(),
	})
}

func forkedSessions() []foreigntest.Session {
	reverted := mainSession()
	reverted.Prompts = append(reverted.Prompts, "turn two again")
	reverted.Model, reverted.Says = "gpt-5.5", "redone"
	return []foreigntest.Session{reverted, {
		ID: forkID, Workspace: "/workspace", Prompts: []string{"turn one: make a file", "turn two again"},
		Tools: []string{"apply_patch", "exec_command"}, Says: "redone", Model: "gpt-5.5", Tokens: true, Command: "codex",
	}}
}

// TestSuiteForked runs the suite on a session that was forked after its first turn and then
// reverted to it: both continuations hold only their own lines.
func TestSuiteForked(t *testing.T) {
	foreigntest.Run(t, foreigntest.Config{Adapter: codex.New(), Home: home("forked"), Sessions: forkedSessions()})
}

var kinds = map[string]foreign.EventKind{
	"SessionStart": foreign.SessionStart, "UserPromptSubmit": foreign.TurnStart, "PreToolUse": foreign.ToolStart,
	"PostToolUse": foreign.ToolEnd, "SubagentStart": foreign.TaskStart, "SubagentStop": foreign.TaskEnd,
	"Stop": foreign.TurnEnd, "SessionEnd": foreign.SessionEnd,
}

// payloads returns the recorded payloads. The prompt of a subagent is not the start of a
// turn.
func payloads(t testing.TB) []foreigntest.Payload {
	t.Helper()
	return foreigntest.PayloadLines(t, func(event string, payload []byte) foreign.EventKind {
		var agent struct {
			ID string `json:"agent_id"`
		}
		if err := json.Unmarshal(payload, &agent); err != nil {
			t.Fatal(err)
		}
		if agent.ID != "" && kinds[event] == foreign.TurnStart {
			return foreign.NoEvent
		}
		return kinds[event]
	})
}

func FuzzTurns(f *testing.F) {
	seed := "testdata/plain/sessions/2026/11/16/rollout-2026-11-16T12-05-26-" + subID + ".jsonl"
	foreigntest.FuzzTurns(f, codex.New(), func(path string) foreign.Session {
		return foreign.Session{Agent: codex.Name, ID: subID, Path: path}
	}, seed)
}

func FuzzEvent(f *testing.F) { foreigntest.FuzzEvent(f, codex.New(), payloads(f)...) }
