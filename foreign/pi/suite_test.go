package pi_test

import (
	"testing"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/foreigntest"
	"github.com/stet-dev/stet/foreign/pi"
)

// home makes a home with the recorded session.
func home(t testing.TB) foreign.Host {
	return foreigntest.Home(t, map[string]string{
		".pi/agent/sessions/--workspace--/2026-11-16T12-29-28-563Z_01a1e455-7672-74fe-bd4b-a0782e8b5688.jsonl": "session.jsonl",
	})
}

// payloads are what the extension sent from a real run.
func payloads(t testing.TB) []foreigntest.Payload {
	return foreigntest.PayloadFiles(t, map[string]foreign.EventKind{
		"session_start": foreign.SessionStart, "before_agent_start": foreign.TurnStart, "tool_call": foreign.ToolStart,
		"tool_result": foreign.ToolEnd, "agent_end": foreign.TurnEnd, "session_shutdown": foreign.SessionEnd,
	})
}

func TestSuite(t *testing.T) {
	foreigntest.Run(t, foreigntest.Config{
		Adapter: pi.New(), Home: home, Lines: true, Payloads: payloads(t),
		Sessions: []foreigntest.Session{{
			ID: "01a1e455-7672-74fe-bd4b-a0782e8b5688", Workspace: "/workspace",
			Prompts: []string{"turn one: make a file", "turn two: change it", "turn three: just say"},
			Tools:   []string{"write", "bash", "edit", "bash"},
			Kinds:   []foreign.Tool{foreign.EditTool, foreign.ShellTool, foreign.EditTool, foreign.ShellTool},
			Says:    "third done", Model: "fake-model", Tokens: true, Command: "pi",
		}},
	})
}

func FuzzTurns(f *testing.F) {
	foreigntest.FuzzTurns(f, pi.New(), func(path string) foreign.Session {
		return foreign.Session{Agent: "pi", ID: "s", Path: path}
	}, "testdata/session.jsonl")
}
