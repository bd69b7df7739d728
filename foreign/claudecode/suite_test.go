package claudecode_test

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/claudecode"
	"github.com/stet-dev/stet/foreign/foreigntest"
)

// The recorded sessions.
const (
	base    = "11111111-1111-4111-8111-111111111111"
	compact = "4eb27576-3749-4865-894c-b1438f3c1db2"
	forked  = "9c5d9b7a-8b1e-44b8-83c9-4af8220a15d6"
	agent   = base + "/agent-aef29690d8bc3ecd1"
)

// home makes a home in which files of testdata are sessions of the project /workspace.
func home(t testing.TB, files map[string]string) foreign.Host {
	t.Helper()
	below := map[string]string{}
	for to, from := range files {
		below[filepath.Join(".claude", "projects", "-workspace", to)] = from
	}
	return foreigntest.Home(t, below)
}

func recorded(t testing.TB) foreign.Host {
	return home(t, map[string]string{
		base + ".jsonl": "session.jsonl", compact + ".jsonl": "compact.jsonl", forked + ".jsonl": "forked.jsonl",
		base + "/subagents/agent-aef29690d8bc3ecd1.jsonl":     "agent.jsonl",
		base + "/subagents/agent-aef29690d8bc3ecd1.meta.json": "agent.meta.json",
	})
}

func rewound(t testing.TB) foreign.Host {
	return home(t, map[string]string{base + ".jsonl": "rewound.jsonl"})
}

var first = []string{"turn one: make a file", "turn two: change it", "turn three: use a helper", "<task-notification>"}

// summary begins what replaces a compacted conversation.
const summary = "This session is being continued from a previous conversation that ran out of context. " +
	"The summary below covers the earlier portion of the conversation."

func TestRecordedSessions(t *testing.T) {
	foreigntest.Run(t, foreigntest.Config{
		Adapter: claudecode.New(), Home: recorded, Lines: true, Payloads: payloads(t),
		Sessions: []foreigntest.Session{{
			ID: base, Workspace: "/workspace", Prompts: first, Automatic: first[3:], Tools: []string{"Write", "Bash", "Edit", "Bash", "Agent"},
			Kinds: []foreign.Tool{foreign.EditTool, foreign.ShellTool, foreign.EditTool, foreign.ShellTool, foreign.TaskTool},
			Says:  "second done", Model: "claude-sonnet-4-5", Tokens: true, Command: "claude",
		}, {
			ID: agent, Parent: base, Workspace: "/workspace", Prompts: []string{"helper"}, Tools: []string{"Write", "Bash"},
			Says: "sub done", Model: "claude-sonnet-4-5", Tokens: true,
		}, {
			ID: compact, Workspace: "/workspace", Tools: []string{"Write", "mcp__probe__ping", "Bash", "Edit", "Bash"},
			Prompts: []string{"first", "second", summary, "after compact"}, Automatic: []string{summary},
			Says: "history 2", Model: "claude-sonnet-4-5", Tokens: true, Command: "claude",
		}, {
			ID: forked, Workspace: "/workspace", Prompts: []string{first[0], "turn two again"}, Tools: []string{"Write", "Bash"},
			Says: "redone", Model: "claude-sonnet-4-5", Tokens: true, Command: "claude",
		}},
	})
}

func TestRewoundSession(t *testing.T) {
	foreigntest.Run(t, foreigntest.Config{
		Adapter: claudecode.New(), Home: rewound, Lines: true,
		Sessions: []foreigntest.Session{{
			ID: base, Workspace: "/scratch", Prompts: append(append([]string{}, first...), "turn two again", "and now"), Automatic: first[3:],
			Tools: []string{"Write", "Bash", "Edit", "Bash", "Agent"}, Says: "redone", Model: "claude-sonnet-4-5", Tokens: true, Command: "claude",
		}},
	})
}

var kinds = map[string]foreign.EventKind{
	"SessionStart": foreign.SessionStart, "UserPromptSubmit": foreign.TurnStart, "PreToolUse": foreign.ToolStart,
	"PostToolUse": foreign.ToolEnd, "SubagentStart": foreign.TaskStart, "SubagentStop": foreign.TaskEnd,
	"Stop": foreign.TurnEnd, "SessionEnd": foreign.SessionEnd,
}

func payloads(t testing.TB) []foreigntest.Payload {
	t.Helper()
	return foreigntest.PayloadLines(t, func(event string, payload []byte) foreign.EventKind {
		if bytes.Contains(payload, []byte(`"source":"compact"`)) {
			return foreign.NoEvent // the session goes on
		}
		return kinds[event]
	})
}

func FuzzTurns(f *testing.F) {
	session := func(path string) foreign.Session { return foreign.Session{Agent: claudecode.Name, ID: "s", Path: path} }
	f.Add([]byte(strings.Repeat(`{"type":"user","uuid":"a","parentUuid":"a","message":{"content":"x"}}`+"\n", 3)))
	foreigntest.FuzzTurns(f, claudecode.New(), session, "testdata/rewound.jsonl", "testdata/compact.jsonl")
}

func FuzzEvent(f *testing.F) { foreigntest.FuzzEvent(f, claudecode.New(), payloads(f)...) }
