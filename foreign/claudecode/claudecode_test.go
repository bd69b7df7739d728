package claudecode_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/claudecode"
	"github.com/stet-dev/stet/foreign/foreigntest"
	"github.com/stet-dev/stet/internal/testenv"
)

var ctx = context.Background()

func sessions(t testing.TB, h foreign.Host) map[string]foreign.Session {
	t.Helper()
	out := map[string]foreign.Session{}
	for s, err := range claudecode.New().Sessions(ctx, h) {
		if err != nil {
			t.Fatal(err)
		}
		out[s.ID] = s
	}
	return out
}

func turns(t testing.TB, s foreign.Session) (out []foreign.Turn) {
	t.Helper()
	for turn, err := range claudecode.New().Turns(ctx, s, "") {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, turn)
	}
	return out
}

// written makes a session of lines that are written here.
func written(t testing.TB, lines ...string) foreign.Session {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s.jsonl")
	foreigntest.Put(t, path, strings.Join(lines, "\n")+"\n")
	return foreign.Session{Agent: claudecode.Name, ID: "s", Path: path, Workspace: "/w"}
}

func TestForkNamesItsOrigin(t *testing.T) {
	s := sessions(t, recorded(t))[forked]
	if s.ForkedFrom != base || s.ForkedAfter != turns(t, s)[0].ID {
		t.Errorf("got %+v", s)
	}
	if s := sessions(t, recorded(t))[base]; s.ForkedFrom != "" {
		t.Errorf("the origin is forked from %s", s.ForkedFrom)
	}
}

func TestCutNamesItsOrigin(t *testing.T) {
	h := recorded(t)
	s := sessions(t, h)[base]
	turn := turns(t, s)[1]
	c, err := claudecode.New().Cut(ctx, h, s, turn)
	if err != nil {
		t.Fatal(err)
	}
	made := sessions(t, h)[c.Session]
	if made.ForkedFrom != base || made.ForkedAfter != turn.ID {
		t.Errorf("got %+v", made)
	}
	if strings.Join(c.Command, " ") != "claude --resume "+c.Session || c.Dir != "/workspace" {
		t.Errorf("got %+v", c)
	}
}

// A copy that went on and was cut again is a fork of the copy.
func TestCutOfACutNamesTheCut(t *testing.T) {
	h := recorded(t)
	s := sessions(t, h)[base]
	first, err := claudecode.New().Cut(ctx, h, s, turns(t, s)[0])
	if err != nil {
		t.Fatal(err)
	}
	lines, err := os.ReadFile(first.Created[0])
	if err != nil {
		t.Fatal(err)
	}
	foreigntest.Put(t, first.Created[0], string(lines)+fmt.Sprintf(`{"type":"user","uuid":"new-u","parentUuid":%q,"promptId":"new","message":{"role":"user","content":"go on"},"cwd":"/workspace","sessionId":%q,"timestamp":"2026-11-16T11:56:16.000Z"}
{"type":"assistant","uuid":"new-a","parentUuid":"new-u","message":{"id":"m","role":"assistant","content":[{"type":"text","text":"Done."}]},"sessionId":%q,"timestamp":"2026-11-16T11:56:18.000Z"}
`, turns(t, s)[0].Cut, first.Session, first.Session))
	copied := sessions(t, h)[first.Session]
	own := turns(t, copied)[1]
	second, err := claudecode.New().Cut(ctx, h, copied, own)
	if err != nil {
		t.Fatal(err)
	}
	if made := sessions(t, h)[second.Session]; made.ForkedFrom != first.Session || made.ForkedAfter != own.ID {
		t.Errorf("got %+v, want a fork of %s after %s", made, first.Session, own.ID)
	}
	// Cut where it began, it is a fork of what it began with.
	third, err := claudecode.New().Cut(ctx, h, copied, turns(t, copied)[0])
	if err != nil {
		t.Fatal(err)
	}
	if made := sessions(t, h)[third.Session]; made.ForkedFrom != base {
		t.Errorf("got %+v, want a fork of %s", made, base)
	}
}

func TestRewoundTurnFollowsTheOneItContinues(t *testing.T) {
	got := turns(t, sessions(t, rewound(t))[base])
	if got[4].Follows != got[0].ID || got[5].Follows != got[4].ID {
		t.Errorf("got %s and %s", got[4].Follows, got[5].Follows)
	}
}

func TestSubagentAndItsCall(t *testing.T) {
	all := sessions(t, recorded(t))
	got := turns(t, all[base])
	call := got[2].Steps[0].Call
	if call.Subagent != agent || all[agent].ParentCall != call.ID {
		t.Errorf("the call %s started %s; the subagent says %s", call.ID, call.Subagent, all[agent].ParentCall)
	}
	if !got[3].Automatic || got[2].Automatic {
		t.Error("only the report of the background task is automatic")
	}
}

func TestEventsAndTurnsMeet(t *testing.T) {
	at := map[string]bool{}
	for _, turn := range turns(t, sessions(t, recorded(t))[base]) {
		at[turn.EventID] = true
	}
	n := 0
	for _, p := range payloads(t) {
		e, err := claudecode.New().Event(p.Event, p.JSON)
		if err != nil {
			t.Fatal(err)
		}
		if e.Session == base && e.Kind == foreign.TurnStart {
			if n++; !at[e.Turn] {
				t.Errorf("no turn has the id %s of an event", e.Turn)
			}
		}
		if e.Subagent != "" && e.Session == base && e.Subagent != agent {
			t.Errorf("an event is in %s", e.Subagent)
		}
	}
	if n != 4 {
		t.Errorf("%d prompts", n)
	}
}

func TestCosts(t *testing.T) {
	got := turns(t, sessions(t, recorded(t))[base])
	for i, want := range []float64{0.00135, 0.00135} {
		if cost := got[i].Usage.CostUSD; cost == nil || *cost != want {
			t.Errorf("turn %d cost %v, want %v", i, cost, want)
		}
	}
	if got[2].Usage.CostUSD != nil || got[3].Usage.CostUSD != nil {
		t.Error("two turns share one total: the cost of each is not known")
	}
	if got[0].Usage.Input != 300 || got[0].Usage.Output != 30 {
		t.Errorf("got %+v", got[0].Usage)
	}
}

func TestLinesOfOneMessageCountOnce(t *testing.T) {
	got := turns(t, written(t,
		`{"type":"user","uuid":"u","parentUuid":null,"message":{"content":"hi"}}`,
		`{"type":"assistant","uuid":"a","parentUuid":"u","message":{"id":"m","content":[{"type":"thinking","thinking":"hm"}],"usage":{"input_tokens":5,"output_tokens":1}}}`,
		`{"type":"assistant","uuid":"b","parentUuid":"a","message":{"id":"m","content":[{"type":"text","text":"yes"}],"stop_reason":"end_turn","usage":{"input_tokens":5,"output_tokens":7}}}`,
	))
	if len(got) != 1 || got[0].Usage.Input != 5 || got[0].Usage.Output != 7 || len(got[0].Steps) != 2 || got[0].Steps[0].Thinking != "hm" || !got[0].Done {
		t.Errorf("got %+v", got)
	}
}

func TestInterruptedTurn(t *testing.T) {
	got := turns(t, written(t,
		`{"type":"user","uuid":"u","parentUuid":null,"message":{"content":"hi"}}`,
		`{"type":"assistant","uuid":"a","parentUuid":"u","message":{"id":"m","content":[{"type":"tool_use","id":"t","name":"Bash","input":{"command":"sleep 9"}}],"stop_reason":"tool_use"}}`,
		`{"type":"user","uuid":"r","parentUuid":"a","message":{"content":[{"type":"tool_result","tool_use_id":"t","is_error":true,"content":"Exit code 130"}]}}`,
		`{"type":"user","uuid":"i","parentUuid":"r","message":{"content":[{"type":"text","text":"[Request interrupted by user for tool use]"}]}}`,
		`{"type":"user","uuid":"v","parentUuid":"i","message":{"content":"again"}}`,
	))
	if len(got) != 2 || !got[0].Interrupted || got[0].Cut != "i" || got[1].Follows != "u" {
		t.Fatalf("got %+v", got)
	}
	if call := got[0].Steps[0].Call; !call.Failed || call.ExitCode == nil || *call.ExitCode != 130 {
		t.Errorf("got %+v", call)
	}
}

// A command is a turn only if the model answers it.
func TestCommands(t *testing.T) {
	got := turns(t, written(t,
		`{"type":"user","uuid":"c","parentUuid":null,"message":{"content":"<command-name>/cost</command-name><command-args></command-args>"}}`,
		`{"type":"user","uuid":"o","parentUuid":"c","message":{"content":"<local-command-stdout>1</local-command-stdout>"}}`,
		`{"type":"user","uuid":"d","parentUuid":"o","message":{"content":"<command-message>review</command-message><command-name>/review</command-name><command-args>all</command-args>"}}`,
		`{"type":"user","uuid":"e","parentUuid":"d","isMeta":true,"message":{"content":"Review the code"}}`,
		`{"type":"assistant","uuid":"a","parentUuid":"e","message":{"id":"m","content":[{"type":"text","text":"fine"}],"stop_reason":"end_turn"}}`,
	))
	if len(got) != 1 || got[0].Prompt != "/review all" || got[0].ID != "d" || len(got[0].Steps) != 1 {
		t.Errorf("got %+v", got)
	}
}

func TestSidechainsInTheMainFileAreSkipped(t *testing.T) {
	got := turns(t, written(t,
		`{"type":"user","uuid":"u","parentUuid":null,"message":{"content":"hi"}}`,
		`{"type":"user","uuid":"x","parentUuid":null,"isSidechain":true,"message":{"content":"helper"}}`,
		`{"type":"assistant","uuid":"a","parentUuid":"u","message":{"content":[{"type":"text","text":"yes"}]}}`,
	))
	if len(got) != 1 || len(got[0].Steps) != 1 {
		t.Errorf("got %+v", got)
	}
}

func TestTitleAndWorkspace(t *testing.T) {
	h := foreign.Host{Home: t.TempDir()}
	foreigntest.Put(t, filepath.Join(h.Home, ".claude/projects/-w-x/s.jsonl"),
		`{"type":"user","uuid":"u","parentUuid":null,"sessionId":"s","cwd":"/w","message":{"content":"hi"},"timestamp":"2026-01-02T03:04:05Z"}`+"\n"+
			`{"type":"user","uuid":"v","parentUuid":"u","sessionId":"s","cwd":"/w/x","message":{"content":"hi"}}`+"\n"+
			`{"type":"summary","summary":"Greetings","leafUuid":"v"}`+"\n")
	s := sessions(t, h)["s"]
	if s.Title != "Greetings" || s.Workspace != "/w/x" || s.Started.Year() != 2026 {
		t.Errorf("got %+v", s)
	}
}

func TestDetectReadsTheVersion(t *testing.T) {
	dir := t.TempDir()
	foreigntest.Put(t, filepath.Join(dir, "versions", "2.1.325"), "")
	program := filepath.Join(dir, "claude")
	testenv.SkipWithout(t, "a file system with links", os.Symlink(filepath.Join(dir, "versions", "2.1.325"), program))
	h := foreign.Host{Home: dir, LookPath: func(string) (string, error) { return program, nil }}
	if in, err := claudecode.New().Detect(ctx, h); err != nil || !in.Found || in.Version != "2.1.325" {
		t.Errorf("got %+v, %v", in, err)
	}
}
