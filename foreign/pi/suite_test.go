package pi_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/foreigntest"
	"github.com/stet-dev/stet/foreign/pi"
)

// home makes a home with the recorded session.
func home(t testing.TB) foreign.Host {
	dir := t.TempDir()
	path := filepath.Join(dir, ".pi", "agent", "sessions", "--workspace--", "2026-11-16T12-29-28-563Z_01a1e455-7672-74fe-bd4b-a0782e8b5688.jsonl")
	data, err := os.ReadFile("testdata/session.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return foreign.Host{Home: dir}
}

// payloads are what the extension sent from a real run.
func payloads(t testing.TB) (out []foreigntest.Payload) {
	for _, p := range []foreigntest.Payload{
		{Event: "session_start", Kind: foreign.SessionStart},
		{Event: "before_agent_start", Kind: foreign.TurnStart},
		{Event: "tool_call", Kind: foreign.ToolStart},
		{Event: "tool_result", Kind: foreign.ToolEnd},
		{Event: "agent_end", Kind: foreign.TurnEnd},
		{Event: "session_shutdown", Kind: foreign.SessionEnd},
	} {
		data, err := os.ReadFile(filepath.Join("testdata", "payloads", p.Event+".json"))
		if err != nil {
			t.Fatal(err)
		}
		p.JSON = data
		out = append(out, p)
	}
	return out
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
