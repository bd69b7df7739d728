package pi_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/pi"
)

var ctx = context.Background()

// session writes lines as a session file and returns it.
func session(t *testing.T, content string) foreign.Session {
	t.Helper()
	path := filepath.Join(t.TempDir(), "2026-11-16T12-29-28-563Z_01a1e455.jsonl")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return at(t, path)
}

func at(t *testing.T, path string) foreign.Session {
	t.Helper()
	for s, err := range pi.New().SessionAt(ctx, foreign.Host{}, path) {
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	t.Fatalf("no session at %s", path)
	return foreign.Session{}
}

func recorded(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("testdata/session.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func read(s foreign.Session, from foreign.Mark) (found []foreign.Turn, errs []error) {
	for turn, err := range pi.New().Turns(ctx, s, from) {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		found = append(found, turn)
	}
	return found, errs
}

// line is an entry of a hand-made session.
func line(id, parent, role, text string) string {
	p := "null"
	if parent != "" {
		p = fmt.Sprintf("%q", parent)
	}
	return fmt.Sprintf(`{"type":"message","id":%q,"parentId":%s,"timestamp":"2026-11-16T12:00:00Z","message":{"role":%q,"content":[{"type":"text","text":%q}],"stopReason":"stop"}}`+"\n", id, p, role, text)
}

const head = `{"type":"session","version":3,"id":"s1","timestamp":"2026-11-16T11:00:00Z","cwd":"/workspace"}` + "\n"

func TestRecordedSession(t *testing.T) {
	s := session(t, recorded(t))
	if s.ID != "01a1e455-7672-74fe-bd4b-a0782e8b5688" || s.Workspace != "/workspace" || s.Started.IsZero() {
		t.Errorf("session: %+v", s)
	}
	turns, errs := read(s, "")
	if errs != nil || len(turns) != 3 {
		t.Fatalf("got %d turns, %v", len(turns), errs)
	}
	one := turns[0]
	if one.ID != "62f0ad93" || !strings.HasPrefix(one.Prompt, "turn one") || len(one.Steps) != 3 || !one.Done || one.Model != "fake-model" || one.Usage.Input != 300 || one.Cut != "ba7d755a" {
		t.Errorf("turn one: %+v", one)
	}
	edit, shell := one.Steps[0].Call, one.Steps[1].Call
	if edit.Tool != foreign.EditTool || edit.Paths[0] != "/workspace/a.txt" || !edit.Answered || !strings.Contains(edit.Output, "4 bytes") {
		t.Errorf("edit: %+v", edit)
	}
	if shell.Tool != foreign.ShellTool || shell.Command != "echo from-bash > b.txt" || shell.Failed {
		t.Errorf("shell: %+v", shell)
	}
	if !strings.HasPrefix(one.Steps[2].Text, "first done") || turns[1].Follows != one.ID || turns[2].Follows != turns[1].ID || one.Follows != "" {
		t.Errorf("reply %q, follows %q, %q", one.Steps[2].Text, turns[1].Follows, turns[2].Follows)
	}
}

func TestReadingContinuesAtEachMark(t *testing.T) {
	s := session(t, recorded(t))
	all, _ := read(s, "")
	for i, turn := range all {
		rest, errs := read(s, turn.Mark)
		if errs != nil || len(rest) != len(all)-1-i {
			t.Fatalf("behind turn %d: %d turns, %v", i, len(rest), errs)
		}
		for j := range rest {
			if want := all[i+1+j]; fmt.Sprint(rest[j].ID, rest[j].Follows, rest[j].Mark) != fmt.Sprint(want.ID, want.Follows, want.Mark) {
				t.Errorf("behind turn %d: got %s after %s, want %s after %s", i, rest[j].ID, rest[j].Follows, want.ID, want.Follows)
			}
		}
	}
}

func TestTornAtEveryByte(t *testing.T) {
	whole := recorded(t)
	full, _ := read(session(t, whole), "")
	path := filepath.Join(t.TempDir(), "s.jsonl")
	for n := strings.Index(whole, "\n") + 1; n <= len(whole); n += 7 {
		if err := os.WriteFile(path, []byte(whole[:n]), 0o600); err != nil {
			t.Fatal(err)
		}
		some, errs := read(foreign.Session{Agent: "pi", Path: path}, "")
		if errs != nil {
			t.Fatalf("torn at %d: %v", n, errs)
		}
		if err := os.WriteFile(path, []byte(whole), 0o600); err != nil {
			t.Fatal(err)
		}
		from := foreign.Mark("")
		if len(some) > 0 {
			from = some[len(some)-1].Mark
		}
		rest, errs := read(foreign.Session{Agent: "pi", Path: path}, from)
		if errs != nil && !errors.Is(errs[0], foreign.ErrMark) {
			t.Fatalf("continued at %d: %v", n, errs)
		}
		if errs == nil && len(rest) > 0 && rest[len(rest)-1].ID != full[2].ID {
			t.Fatalf("continued at %d: the last turn is %s", n, rest[len(rest)-1].ID)
		}
	}
}

func TestBranches(t *testing.T) {
	content := head + line("u1", "", "user", "one") + line("a1", "u1", "assistant", "r1") +
		line("u2", "a1", "user", "two") + line("a2", "u2", "assistant", "r2") +
		line("u3", "a1", "user", "three") + line("a3", "u3", "assistant", "r3") +
		line("u4", "", "user", "four") + line("a4", "u4", "assistant", "r4") +
		line("a5", "u2", "assistant", "again")
	s := session(t, content)
	turns, errs := read(s, "")
	var got []string
	for _, turn := range turns {
		got = append(got, turn.ID+"<"+turn.Follows)
	}
	if want := "u1< u2<u1 u3<u1 u4<" + foreign.Beginning + " a5<u2"; strings.Join(got, " ") != want || errs != nil {
		t.Errorf("got %s, want %s, %v", strings.Join(got, " "), want, errs)
	}
	if _, errs := read(s, turns[1].Mark); errs != nil && !errors.Is(errs[0], foreign.ErrMark) {
		t.Errorf("from the mark of a branch: %v", errs)
	}
	last, errs := read(s, turns[3].Mark)
	if len(errs)+len(last) != 1 {
		t.Errorf("behind the last branch: %v, %v", last, errs)
	}
}

func TestGarbageLinesAreReportedAndTheRestIsRead(t *testing.T) {
	content := head + line("u1", "", "user", "one") + "garbage\n" + line("a1", "lost", "assistant", "r1") +
		`{"type":"future","id":"x","parentId":"a1","timestamp":"2026-11-16T12:00:00Z","message":7}` + "\n" + line("u2", "x", "user", "two")
	turns, errs := read(session(t, content), "")
	if len(turns) != 2 || len(turns[0].Steps) != 1 || turns[1].Follows != "u1" || turns[1].Done {
		t.Errorf("got %+v", turns)
	}
	if len(errs) != 1 || !foreign.Unreadable(errs[0]) {
		t.Errorf("got %v", errs)
	}
}

func TestCompactionIsAnAutomaticTurn(t *testing.T) {
	content := head + line("u1", "", "user", "one") + line("a1", "u1", "assistant", "r1") +
		`{"type":"compaction","id":"c1","parentId":"a1","timestamp":"2026-11-16T12:00:00Z","summary":"so far"}` + "\n" + line("u2", "c1", "user", "two")
	turns, errs := read(session(t, content), "")
	if len(turns) != 3 || errs != nil || !turns[1].Automatic || turns[1].Prompt != "so far" || turns[2].Follows != "c1" {
		t.Errorf("got %+v, %v", turns, errs)
	}
}

func TestCutAtEveryTurn(t *testing.T) {
	whole := recorded(t)
	s := session(t, whole)
	all, _ := read(s, "")
	for i, turn := range all {
		c, err := pi.New().Cut(ctx, foreign.Host{}, s, turn)
		if err != nil {
			t.Fatal(err)
		}
		cut := at(t, c.Created[0])
		if cut.ID != c.Session || cut.ForkedFrom != s.ID || cut.ForkedAfter != turn.ID || c.Dir != "/workspace" || c.Command[1] != "--session" {
			t.Errorf("turn %d: %+v, %+v", i, c, cut)
		}
		kept, errs := read(cut, "")
		if errs != nil || len(kept) != i+1 || kept[i].ID != turn.ID || len(kept[i].Steps) != len(turn.Steps) {
			t.Errorf("turn %d: kept %d turns, %v", i, len(kept), errs)
		}
	}
	if now, _ := os.ReadFile(s.Path); !bytes.Equal(now, []byte(whole)) {
		t.Error("the session was changed")
	}
}

func TestCutOfABranchHasOnlyTheBranch(t *testing.T) {
	s := session(t, head+line("u1", "", "user", "one")+line("a1", "u1", "assistant", "r1")+line("u2", "a1", "user", "two")+line("u3", "a1", "user", "three"))
	all, _ := read(s, "")
	c, err := pi.New().Cut(ctx, foreign.Host{}, s, all[2])
	if err != nil {
		t.Fatal(err)
	}
	kept, _ := read(at(t, c.Created[0]), "")
	if len(kept) != 2 || kept[1].ID != "u3" {
		t.Errorf("got %+v", kept)
	}
}

func TestCutThatCannotBeMade(t *testing.T) {
	s := session(t, head+line("u1", "lost", "user", "one"))
	for _, turn := range []foreign.Turn{{}, {ID: "no", Cut: "no"}, {ID: "u1", Cut: "u1"}} {
		if _, err := pi.New().Cut(ctx, foreign.Host{}, s, turn); !errors.Is(err, foreign.ErrCannotCut) {
			t.Errorf("cut at %q: %v", turn.Cut, err)
		}
	}
	if found, _ := os.ReadDir(filepath.Dir(s.Path)); len(found) != 1 {
		t.Errorf("%d files are left", len(found))
	}
}

func TestEvents(t *testing.T) {
	for _, c := range []struct {
		name, payload string
		kind          foreign.EventKind
	}{
		{"session_start", `{"event":"session_start","session":"s","file":"/f","cwd":"/w"}`, foreign.SessionStart},
		{"before_agent_start", `{"event":"before_agent_start","session":"s","file":"/f","cwd":"/w","prompt":"do"}`, foreign.TurnStart},
		{"tool_call", `{"event":"tool_call","session":"s","file":"/f","cwd":"/w","tool":{"id":"c","name":"write","input":{"path":"/w/a"}}}`, foreign.ToolStart},
		{"tool_result", `{"event":"tool_result","session":"s","file":"/f","cwd":"/w","tool":{"id":"c","name":"write","input":{"path":"/w/a"},"failed":true}}`, foreign.ToolEnd},
		{"agent_end", `{"event":"agent_end","session":"s","file":"/f","cwd":"/w"}`, foreign.TurnEnd},
		{"session_shutdown", `{"event":"session_shutdown","session":"s","file":"/f","cwd":"/w"}`, foreign.SessionEnd},
		{"other", `{"event":"other","session":"s","file":"/f","cwd":"/w"}`, foreign.NoEvent},
	} {
		e, err := pi.New().Event(c.name, []byte(c.payload))
		if err != nil || e.Kind != c.kind || e.Session != "s" || e.Workspace != "/w" || e.Transcript != "/f" {
			t.Errorf("%s: %+v, %v", c.name, e, err)
		}
		if strings.HasPrefix(c.name, "tool") && (e.Call == nil || e.Call.Paths[0] != "/w/a" || e.Call.Failed != (c.kind == foreign.ToolEnd)) {
			t.Errorf("%s: %+v", c.name, e.Call)
		}
	}
	for _, bad := range []string{"", "[]", `{"event":"tool_call"}`} {
		if _, err := pi.New().Event("agent_end", []byte(bad)); !errors.Is(err, foreign.ErrEvent) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestConnectionNamesTheCommand(t *testing.T) {
	command := []string{`/odd "path"/stet`, "hook", "pi"}
	changes, err := pi.New().Connection(foreign.Host{Home: "/home/u"}, foreign.Connect{Command: command})
	if err != nil || len(changes) != 1 || changes[0].Path != filepath.Join("/home/u", ".pi", "agent", "extensions", "stet.ts") {
		t.Fatalf("got %+v, %v", changes, err)
	}
	if want := `const command = ["/odd \"path\"/stet","hook","pi"];`; !bytes.Contains(changes[0].Content, []byte(want)) {
		t.Errorf("got %s", changes[0].Content)
	}
	changes, _ = pi.New().Connection(foreign.Host{Home: "/home/u"}, foreign.Connect{Command: command, Project: "/p"})
	if changes[0].Path != filepath.Join("/p", ".pi", "extensions", "stet.ts") {
		t.Errorf("got %s", changes[0].Path)
	}
}

func TestDetect(t *testing.T) {
	home := t.TempDir()
	h := foreign.Host{Home: home, LookPath: func(string) (string, error) { return "/usr/bin/pi", nil }}
	if in, err := pi.New().Detect(ctx, h); err != nil || in.Found {
		t.Errorf("another program: %+v, %v", in, err)
	}
	if err := os.MkdirAll(filepath.Join(home, ".pi", "agent"), 0o700); err != nil {
		t.Fatal(err)
	}
	if in, err := pi.New().Detect(ctx, h); err != nil || !in.Found || in.Program != "/usr/bin/pi" {
		t.Errorf("got %+v, %v", in, err)
	}
	for range pi.New().Sessions(ctx, h) {
		t.Error("there are no sessions")
	}
}
