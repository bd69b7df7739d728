package gemini_test

import (
	"testing"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/foreigntest"
	"github.com/stet-dev/stet/foreign/gemini"
)

const (
	mainID = "0e906ef8-b358-4bcb-821d-ddb7e196ee52"
	subID  = "656b1c39-a9a4-456f-ab7b-cba8a2bd4aae"
)

// home makes a home with the recorded sessions.
func home(t testing.TB) foreign.Host {
	const chats = ".gemini/tmp/gemini/chats/"
	return foreigntest.Home(t, map[string]string{
		chats + "session-2026-11-16T12-10-0e906ef8.jsonl": "session.jsonl",
		chats + mainID + "/" + subID + ".jsonl":           "subagent.jsonl",
		".gemini/projects.json":                           "projects.json",
	})
}

func payloads(t testing.TB) []foreigntest.Payload {
	return foreigntest.PayloadFiles(t, map[string]foreign.EventKind{
		"SessionStart": foreign.SessionStart, "BeforeAgent": foreign.TurnStart, "PreCompress": foreign.NoEvent,
		"BeforeTool": foreign.ToolStart, "AfterTool": foreign.ToolEnd, "AfterAgent": foreign.TurnEnd,
		"SessionEnd": foreign.SessionEnd,
	})
}

// lastChance is what the CLI says to a subagent that does not end.
const lastChance = "You have stopped calling tools without finishing. You have one final chance to complete the task with a short grace period. You MUST call `complete_task` immediately with your best answer and explain that your investigation was interrupted. Do not call any other tools."

func TestSuite(t *testing.T) {
	foreigntest.Run(t, foreigntest.Config{
		Adapter: gemini.New(), Home: home, Lines: true, Payloads: payloads(t),
		Sessions: []foreigntest.Session{{
			ID: mainID, Workspace: "/workspace",
			Prompts: []string{"turn one: make a file", "turn two: change it", "turn three: use a helper"},
			Tools:   []string{"write_file", "run_shell_command", "replace", "run_shell_command", "invoke_agent", "mcp_probe_ping"},
			Kinds:   []foreign.Tool{foreign.EditTool, foreign.ShellTool, foreign.EditTool, foreign.ShellTool, foreign.TaskTool, foreign.OtherTool},
			Says:    "third done", Model: "gemini-2.5-pro", Tokens: true, Command: "gemini",
		}, {
			ID: subID, Workspace: "/workspace", Parent: mainID,
			Prompts:   []string{"helper", lastChance},
			Automatic: []string{lastChance},
			Tools:     []string{"run_shell_command"},
			Says:      "sub done", Model: "gemini-2.5-pro", Tokens: true,
		}},
	})
}

func FuzzTurns(f *testing.F) {
	foreigntest.FuzzTurns(f, gemini.New(), func(path string) foreign.Session {
		return foreign.Session{Agent: "gemini", ID: "s", Path: path}
	}, "testdata/session.jsonl", "testdata/subagent.jsonl")
}
