package copilot_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/copilot"
	"github.com/stet-dev/stet/foreign/foreigntest"
	"github.com/stet-dev/stet/internal/testenv"
)

const (
	mainID = "fe3e6318-6728-4bab-a84c-3376c796122c"
	subID  = "228e0cb8-5dd7-49af-b963-9e24aa10e2e2"
)

var ctx = context.Background()

// home makes a home with the recorded session of a directory of testdata.
func home(name string) func(t testing.TB) foreign.Host {
	return func(t testing.TB) foreign.Host {
		t.Helper()
		dir := t.TempDir()
		if err := os.CopyFS(filepath.Join(dir, ".copilot"), os.DirFS(filepath.Join("testdata", name))); err != nil {
			t.Fatal(err)
		}
		return foreign.Host{Home: dir}
	}
}

// TestSuite uses a session without subagents: one file is one session.
func TestSuite(t *testing.T) {
	foreigntest.Run(t, foreigntest.Config{
		Adapter: copilot.New(), Home: home("plain"), Lines: true, Payloads: payloads(t),
		Sessions: []foreigntest.Session{{
			ID: mainID, Workspace: "/workspace", Prompts: []string{"turn one: make a file", "turn two: change it"},
			Tools: []string{"create", "bash", "edit", "bash"},
			Kinds: []foreign.Tool{foreign.EditTool, foreign.ShellTool, foreign.EditTool, foreign.ShellTool},
			Says:  "second done", Model: "gpt-5.1", Tokens: true, Command: "copilot",
		}},
	})
}

func TestSuiteWithASubagent(t *testing.T) {
	foreigntest.Run(t, foreigntest.Config{
		Adapter: copilot.New(), Home: home("subagent"),
		Sessions: []foreigntest.Session{{
			ID: mainID, Workspace: "/workspace",
			Prompts: []string{"turn one: make a file", "turn two: change it", "turn three: use a helper"},
			Tools:   []string{"create", "bash", "edit", "bash", "task"}, Says: "third done", Model: "gpt-5.1", Tokens: true, Command: "copilot",
		}, {
			ID: subID, Workspace: "/workspace", Parent: mainID, Prompts: []string{"helper"}, Tools: []string{"bash"},
			Says: "sub done", Model: "gpt-5.1", Tokens: true,
		}},
	})
}

var kinds = map[string]foreign.EventKind{
	"sessionStart": foreign.SessionStart, "userPromptSubmitted": foreign.TurnStart, "preToolUse": foreign.ToolStart,
	"postToolUse": foreign.ToolEnd, "subagentStart": foreign.TaskStart, "subagentStop": foreign.TaskEnd,
	"agentStop": foreign.TurnEnd, "sessionEnd": foreign.SessionEnd,
}

// payloads returns the recorded payloads. Prompts and answers of a subagent are not those
// of a turn.
func payloads(t testing.TB) []foreigntest.Payload {
	t.Helper()
	return foreigntest.PayloadLines(t, func(event string, payload []byte) foreign.EventKind {
		kind := kinds[event]
		if inside := strings.Contains(string(payload), `"sessionId": "`+subID); inside && (kind == foreign.TurnStart || kind == foreign.TurnEnd) {
			return foreign.NoEvent
		}
		return kind
	})
}

// sessions returns the sessions of a home by id.
func sessions(t *testing.T, h foreign.Host) map[string]foreign.Session {
	t.Helper()
	out := map[string]foreign.Session{}
	for s, err := range copilot.New().Sessions(ctx, h) {
		if err != nil {
			t.Fatal(err)
		}
		out[s.ID] = s
	}
	return out
}

func read(s foreign.Session) (found []foreign.Turn, first error) {
	for turn, err := range copilot.New().Turns(ctx, s, "") {
		if err != nil && first == nil {
			first = err
		}
		if err == nil {
			found = append(found, turn)
		}
	}
	return found, first
}

func TestRecordedCalls(t *testing.T) {
	turns, err := read(sessions(t, home("subagent")(t))[mainID])
	if err != nil || len(turns) != 3 {
		t.Fatalf("%d turns, %v", len(turns), err)
	}
	edit, shell, task := turns[0].Steps[0].Call, turns[0].Steps[1].Call, turns[2].Steps[0].Call
	if cmp.Diff([]string{"/workspace/a.txt"}, edit.Paths) != "" || edit.Output != "Created file /workspace/a.txt with 4 characters" || edit.Failed {
		t.Errorf("edit %+v", edit)
	}
	if shell.Command != "echo from-bash > b.txt" || shell.ExitCode == nil || *shell.ExitCode != 0 || !shell.Ended.After(shell.Started) {
		t.Errorf("shell %+v", shell)
	}
	if task.Subagent != subID || !strings.HasPrefix(task.Task, "helper") || !strings.HasPrefix(task.Output, "sub done") {
		t.Errorf("task %+v", task)
	}
	for i, turn := range turns {
		if want := []int64{300, 300, 200}[i]; turn.Usage.Input != want || !turn.Done || turn.Interrupted || len(turn.Steps) > 3 {
			t.Errorf("turn %d: %+v, %d steps", i, turn.Usage, len(turn.Steps))
		}
	}
}

func TestASubagentNamesTheCallThatStartedIt(t *testing.T) {
	all := sessions(t, home("subagent")(t))
	turns, _ := read(all[mainID])
	if sub := all[subID]; sub.ParentCall != turns[2].Steps[0].Call.ID {
		t.Errorf("%+v", sub)
	}
}

func TestTheCutHasItsOwnID(t *testing.T) {
	h := home("subagent")(t)
	s := sessions(t, h)[mainID]
	turns, _ := read(s)
	cont, err := copilot.New().Cut(ctx, h, s, turns[2])
	if err != nil {
		t.Fatal(err)
	}
	if cmp.Diff([]string{"copilot", "--resume=" + cont.Session}, cont.Command) != "" || cont.Dir != "/workspace" || len(cont.Created) != 2 {
		t.Errorf("%+v", cont)
	}
	yaml, err := os.ReadFile(cont.Created[1])
	if err != nil || !strings.HasPrefix(string(yaml), "id: "+cont.Session+"\n") || strings.Contains(string(yaml), mainID) {
		t.Errorf("%s, %v", yaml, err)
	}
	events, err := os.ReadFile(cont.Created[0])
	if err != nil || strings.Contains(string(events), `"sessionId":"`+mainID) || strings.Contains(string(events), `"agent-`+mainID) {
		t.Errorf("the events have the old id: %v", err)
	}
	if info, err := os.Stat(filepath.Dir(cont.Created[0])); err != nil || info.Mode().Perm()&0o077 != 0 && os.PathSeparator == '/' {
		t.Errorf("%v, %v", info, err)
	}
	if _, err := copilot.New().Cut(ctx, h, s, foreign.Turn{ID: "x", Cut: "x"}); !errors.Is(err, foreign.ErrCannotCut) {
		t.Errorf("a turn of another session: %v", err)
	}
}

// TestAnInterruptedTurn reads a turn that ends in the middle of a call.
func TestAnInterruptedTurn(t *testing.T) {
	h := home("plain")(t)
	s := sessions(t, h)[mainID]
	data, _ := os.ReadFile(s.Path)
	lines := strings.SplitAfter(string(data), "\n")
	at := 0
	for i, l := range lines {
		if strings.HasPrefix(l, `{"type":"tool.execution_start"`) {
			at = i
		}
	}
	abort := `{"type":"abort","data":{"reason":"user_initiated"},"id":"x","timestamp":"2026-11-16T12:29:16Z","parentId":null}` + "\n"
	if err := os.WriteFile(s.Path, []byte(strings.Join(lines[:at+1], "")+abort), 0o600); err != nil {
		t.Fatal(err)
	}
	turns, err := read(s)
	if err != nil || len(turns) != 2 || !turns[1].Interrupted || !turns[1].Done {
		t.Fatalf("%+v, %v", turns, err)
	}
	if c := turns[1].Steps[1].Call; c.Answered || c.Name != "bash" {
		t.Errorf("%+v", c)
	}
}

func TestEventsOfASubagentBelongToItsSession(t *testing.T) {
	for _, p := range payloads(t) {
		e, err := copilot.New().Event(p.Event, p.JSON)
		if err != nil || e.Session != mainID {
			t.Errorf("%s: session %s, %v", p.Event, e.Session, err)
		}
		if inside := strings.Contains(string(p.JSON), `"agentId"`); inside != (e.Subagent == subID) {
			t.Errorf("%s: subagent %q", p.Event, e.Subagent)
		}
	}
	text := `{"sessionId":"s","cwd":"/w","toolName":"bash","toolArgs":"{\"command\":\"ls\"}"}`
	if e, err := copilot.New().Event("preToolUse", []byte(text)); err != nil || e.Call.Command != "ls" {
		t.Errorf("arguments as a text: %+v, %v", e.Call, err)
	}
}

// TestAMissingProgramDoesNotDenyTools runs the configured command without its program.
func TestAMissingProgramDoesNotDenyTools(t *testing.T) {
	shell, err := exec.LookPath("bash")
	testenv.SkipWithout(t, "bash", err)
	changes, err := copilot.New().Connection(foreign.Host{Home: "/h"}, foreign.Connect{Command: []string{"/not there/stet", "hook", "copilot"}})
	if err != nil || len(changes) != 1 || changes[0].Path != filepath.Join("/h", ".copilot", "hooks", "stet.json") {
		t.Fatalf("%+v, %v", changes, err)
	}
	var file struct {
		Version int
		Hooks   map[string][]struct {
			Bash       string
			TimeoutSec int
		}
	}
	if err := json.Unmarshal(changes[0].Content, &file); err != nil || file.Version != 1 || len(file.Hooks) < 8 {
		t.Fatalf("%s, %v", changes[0].Content, err)
	}
	hook := file.Hooks["preToolUse"][0]
	if err := exec.Command(shell, "-c", hook.Bash).Run(); err != nil || hook.TimeoutSec <= 0 {
		t.Errorf("%s: %v", hook.Bash, err)
	}
}

func FuzzTurns(f *testing.F) {
	foreigntest.FuzzTurns(f, copilot.New(), func(path string) foreign.Session {
		return foreign.Session{Agent: copilot.Name, ID: mainID, Path: path}
	}, "testdata/plain/session-state/"+mainID+"/events.jsonl")
}

func FuzzEvent(f *testing.F) { foreigntest.FuzzEvent(f, copilot.New(), payloads(f)...) }
