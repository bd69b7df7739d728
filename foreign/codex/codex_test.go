package codex_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/codex"
)

var ctx = context.Background()

// find returns a session of a home.
func find(t *testing.T, h foreign.Host, id string) foreign.Session {
	t.Helper()
	for s, err := range codex.New().Sessions(ctx, h) {
		if err != nil {
			t.Fatal(err)
		}
		if s.ID == id {
			return s
		}
	}
	t.Fatalf("no session %s", id)
	return foreign.Session{}
}

func read(s foreign.Session, from foreign.Mark) (found []foreign.Turn, first error) {
	for turn, err := range codex.New().Turns(ctx, s, from) {
		if err != nil && first == nil {
			first = err
		}
		if err == nil {
			found = append(found, turn)
		}
	}
	return found, first
}

// written makes a home with one session of some lines.
func written(t *testing.T, lines ...string) (foreign.Host, foreign.Session) {
	t.Helper()
	h := foreign.Host{Home: t.TempDir()}
	dir := filepath.Join(h.Home, ".codex", "sessions", "2025", "10", "01")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "rollout-2025-10-01T08-00-00-"+mainID+".jsonl")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return h, find(t, h, mainID)
}

const meta = `{"timestamp":"2025-10-01T08:00:00Z","type":"session_meta","payload":{"id":"` + mainID + `","timestamp":"2025-10-01T08:00:00Z","cwd":"/w"}}`

func message(role, text string) string {
	return payload("response_item", map[string]any{"type": "message", "role": role, "content": []any{map[string]string{"type": "text", "text": text}}})
}

func event(fields map[string]any) string { return payload("event_msg", fields) }

func payload(kind string, body any) string {
	data, err := json.Marshal(map[string]any{"timestamp": "2025-10-01T08:00:01Z", "type": kind, "payload": body})
	if err != nil {
		panic(err)
	}
	return string(data)
}

func TestRecordedCalls(t *testing.T) {
	turns, err := read(find(t, home("plain")(t), mainID), "")
	if err != nil || len(turns) != 3 {
		t.Fatalf("%d turns, %v", len(turns), err)
	}
	edit, shell, task := turns[0].Steps[0].Call, turns[0].Steps[1].Call, turns[2].Steps[0].Call
	if diff := cmp.Diff([]string{"/workspace/a.txt"}, edit.Paths); diff != "" || edit.Failed || !strings.Contains(edit.Output, "A a.txt") {
		t.Errorf("edit %+v", edit)
	}
	if shell.Command != "echo from-bash > b.txt" || shell.ExitCode == nil || *shell.ExitCode != 0 || !shell.Answered {
		t.Errorf("shell %+v", shell)
	}
	if task.Subagent != subID || !strings.HasPrefix(task.Task, "helper") {
		t.Errorf("task %+v", task)
	}
	if last := turns[0].Steps[2].Text; last != "first done [[history 1: turn one: make a file]]" || len(turns[0].Steps) != 3 {
		t.Errorf("the reply is %q of %d steps", last, len(turns[0].Steps))
	}
	if got, want := turns[0].Usage, (foreign.Usage{Input: 300, Output: 30}); got != want {
		t.Errorf("usage %+v", got)
	}
}

func TestAForkNamesItsOrigin(t *testing.T) {
	h := home("forked")(t)
	origin, _ := read(find(t, h, mainID), "")
	fork := find(t, h, forkID)
	if fork.ForkedFrom != mainID || fork.ForkedAfter != origin[0].ID {
		t.Errorf("forked from %s after %s", fork.ForkedFrom, fork.ForkedAfter)
	}
	turns, err := read(fork, "")
	if err != nil || len(turns) != 2 || turns[0].ID != origin[0].ID || turns[1].Follows != origin[0].ID {
		t.Fatalf("%+v, %v", turns, err)
	}
	if origin[3].Follows != origin[0].ID || origin[1].Follows != origin[0].ID {
		t.Errorf("the reverted session follows %s", origin[3].Follows)
	}
	if turns[1].Usage.Input != 100 {
		t.Errorf("the fork counts %+v", turns[1].Usage)
	}
}

func TestAForkWithoutItsOriginIsReadAsFarAsItGoes(t *testing.T) {
	h := home("forked")(t)
	main := find(t, h, mainID)
	if err := os.RemoveAll(main.Path); err != nil {
		t.Fatal(err)
	}
	fork := find(t, h, forkID)
	turns, err := read(fork, "")
	if len(turns) != 1 || !foreign.Unreadable(err) {
		t.Fatalf("%d turns, %v", len(turns), err)
	}
	if _, err := codex.New().Cut(ctx, h, fork, turns[0]); !foreign.Unreadable(err) {
		t.Errorf("a cut of half a conversation: %v", err)
	}
}

// TestACutIsOneConversation looks at the copy of a fork, whose lines are in two files.
func TestACutIsOneConversation(t *testing.T) {
	h := home("forked")(t)
	s := find(t, h, forkID)
	turns, _ := read(s, "")
	cont, err := codex.New().Cut(ctx, h, s, turns[1])
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"codex", "resume", cont.Session}, cont.Command); diff != "" || cont.Dir != "/workspace" {
		t.Errorf("%+v", cont)
	}
	data, err := os.ReadFile(cont.Created[0])
	if err != nil {
		t.Fatal(err)
	}
	if text := string(data); strings.Contains(text, mainID) || strings.Contains(text, forkID) || !strings.Contains(text, cont.Session) {
		t.Error("the copy has an old id, or not its own")
	}
	metas := 0
	for i, raw := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		var l struct {
			Ordinal int
			Type    string
		}
		if err := json.Unmarshal([]byte(raw), &l); err != nil || l.Ordinal != i {
			t.Fatalf("line %d has the ordinal %d, %v", i, l.Ordinal, err)
		}
		if l.Type == "session_meta" {
			metas++
		}
	}
	if metas != 1 || strings.Contains(string(data), "history_base") {
		t.Errorf("the copy has %d descriptions", metas)
	}
}

func TestACutOfOneFileChangesOnlyTheID(t *testing.T) {
	h := home("plain")(t)
	s := find(t, h, mainID)
	turns, _ := read(s, "")
	cont, err := codex.New().Cut(ctx, h, s, turns[0])
	if err != nil {
		t.Fatal(err)
	}
	old, _ := os.ReadFile(s.Path)
	made, _ := os.ReadFile(cont.Created[0])
	want := strings.ReplaceAll(strings.Join(strings.SplitAfter(string(old), "\n")[:24], ""), mainID, cont.Session)
	if string(made) != want {
		t.Errorf("the copy has %d bytes, want %d", len(made), len(want))
	}
	if _, err := codex.New().Cut(ctx, h, s, foreign.Turn{ID: "x", Cut: "x"}); !errors.Is(err, foreign.ErrCannotCut) {
		t.Errorf("a turn of another session: %v", err)
	}
}

// TestOlderRecords reads records that do not say where turns begin and end.
func TestOlderRecords(t *testing.T) {
	h, s := written(t, meta,
		message("user", "<environment_context>\n</environment_context>"),
		message("user", "# AGENTS.md instructions for /w\n<INSTRUCTIONS>be brief</INSTRUCTIONS>"),
		message("user", "first"), event(map[string]any{"type": "user_message", "message": "first"}),
		event(map[string]any{"type": "agent_reasoning", "text": "hm"}),
		payload("response_item", map[string]any{"type": "reasoning", "summary": []any{map[string]string{"type": "summary_text", "text": "hm"}}}),
		payload("response_item", map[string]any{"type": "function_call", "name": "shell", "call_id": "c1", "arguments": `{"command":["bash","-lc","false"]}`}),
		payload("response_item", map[string]any{"type": "function_call_output", "call_id": "c1", "output": `{"output":"","metadata":{"exit_code":1}}`}),
		event(map[string]any{"type": "agent_message", "message": "done"}), message("assistant", "done"),
		event(map[string]any{"type": "token_count", "info": nil}),
		message("user", "second"), event(map[string]any{"type": "user_message", "message": "second"}),
		event(map[string]any{"type": "turn_aborted", "reason": "interrupted"}),
		message("user", "<turn_aborted>\nThe user interrupted\n</turn_aborted>"),
		message("user", "second"), event(map[string]any{"type": "user_message", "message": "second"}), message("assistant", "again"),
	)
	turns, err := read(s, "")
	if err != nil || len(turns) != 3 {
		t.Fatalf("%d turns, %v: %+v", len(turns), err, turns)
	}
	if turns[0].Prompt != "first" || turns[1].Prompt != "second" || !turns[1].Interrupted || turns[2].Prompt != "second" || turns[2].Done {
		t.Errorf("%+v", turns)
	}
	steps := turns[0].Steps
	if len(steps) != 3 || steps[0].Thinking != "hm" || steps[2].Text != "done" {
		t.Fatalf("steps %+v", steps)
	}
	if c := steps[1].Call; c.Command != "false" || !c.Failed || c.ExitCode == nil || *c.ExitCode != 1 {
		t.Errorf("call %+v", c)
	}
	for _, turn := range turns {
		if _, err := codex.New().Cut(ctx, h, s, turn); err != nil {
			t.Errorf("cut after %q: %v", turn.Prompt, err)
		}
	}
}

func TestTurnsThatWereTakenBack(t *testing.T) {
	_, s := written(t, meta,
		message("user", "one"), message("assistant", "1"), message("user", "two"), message("assistant", "2"),
		event(map[string]any{"type": "thread_rolled_back", "num_turns": 1}),
		message("user", "other two"), message("assistant", "2"),
		event(map[string]any{"type": "thread_rolled_back", "num_turns": 2}),
		message("user", "other one"), message("assistant", "1"),
	)
	turns, err := read(s, "")
	if err != nil || len(turns) != 4 {
		t.Fatalf("%d turns, %v", len(turns), err)
	}
	if turns[2].Follows != turns[0].ID || turns[3].Follows != foreign.Beginning {
		t.Errorf("follow %q, %q", turns[2].Follows, turns[3].Follows)
	}
	if _, err := read(s, turns[1].Mark); !errors.Is(err, foreign.ErrMark) {
		t.Errorf("taking back turns before the mark: %v", err)
	}
}

func TestAReplacedRecordIsNoticed(t *testing.T) {
	_, s := written(t, meta, message("user", "one"), message("assistant", "1"), message("user", "two"), message("assistant", "2"))
	turns, _ := read(s, "")
	data, _ := os.ReadFile(s.Path)
	if err := os.WriteFile(s.Path, []byte(strings.Replace(string(data), `"text":"1"`, `"text":"7"`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := read(s, turns[0].Mark); !errors.Is(err, foreign.ErrMark) {
		t.Errorf("got %v", err)
	}
}

func TestArchivedSessionsAndNames(t *testing.T) {
	h, s := written(t, meta, message("user", "one"), message("assistant", "1"))
	archive := filepath.Join(h.Home, ".codex", "archived_sessions")
	if err := os.Mkdir(archive, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(s.Path, filepath.Join(archive, filepath.Base(s.Path))); err != nil {
		t.Fatal(err)
	}
	index := `{"id":"` + mainID + `","thread_name":"my session"}` + "\n"
	if err := os.WriteFile(filepath.Join(h.Home, ".codex", "session_index.jsonl"), []byte(index), 0o600); err != nil {
		t.Fatal(err)
	}
	if s = find(t, h, mainID); s.Title != "my session" || !strings.HasPrefix(s.Path, archive) {
		t.Errorf("%+v", s)
	}
	turns, err := read(s, "")
	if err != nil || len(turns) != 1 {
		t.Fatalf("%d turns, %v", len(turns), err)
	}
	cont, err := codex.New().Cut(ctx, h, s, turns[0])
	if err != nil || !strings.HasPrefix(cont.Created[0], filepath.Join(h.Home, ".codex", "sessions")) {
		t.Errorf("%+v, %v", cont, err)
	}
}

func TestEventsOfASubagent(t *testing.T) {
	for _, p := range payloads(t) {
		e, err := codex.New().Event(p.Event, p.JSON)
		if err != nil {
			t.Fatal(err)
		}
		if e.Subagent != "" && (e.Session != mainID || e.Turn != "" || strings.Contains(e.Transcript, subID)) {
			t.Errorf("%s: %+v", p.Event, e)
		}
		if e.Call != nil && e.Call.Name == "apply_patch" && cmp.Diff([]string{"a.txt"}, e.Call.Paths) != "" {
			t.Errorf("%s names %v", p.Event, e.Call.Paths)
		}
	}
	compact := `{"session_id":"s","cwd":"/w","source":"compact"}`
	if e, err := codex.New().Event("SessionStart", []byte(compact)); err != nil || e.Kind != foreign.NoEvent {
		t.Errorf("a compaction is %+v, %v", e, err)
	}
}

func TestLimitsOfHooks(t *testing.T) {
	changes, err := codex.New().Connection(foreign.Host{Home: "/h"}, foreign.Connect{Command: []string{"/bin/stet", "hook", "codex"}})
	if err != nil || len(changes) != 1 || changes[0].Path != filepath.Join("/h", ".codex", "hooks.json") || !strings.Contains(changes[0].Note, "Trust all and continue") {
		t.Fatalf("%+v, %v", changes, err)
	}
	want := `{"hooks":[{"type":"command","command":"/bin/stet hook codex SessionEnd","timeout":3}]}`
	if last := changes[0].Hooks[len(changes[0].Hooks)-1]; last.Value != want {
		t.Errorf("got %s", last.Value)
	}
}

// TestATurnWithoutAPromptHasNotBegun: Codex records that a turn begins before it reports
// the prompt, and the prompt after that.
func TestATurnWithoutAPromptHasNotBegun(t *testing.T) {
	begun := []string{meta, event(map[string]any{"type": "task_started", "turn_id": "t1"}), payload("turn_context", map[string]any{"turn_id": "t1", "model": "m"})}
	_, s := written(t, begun...)
	if turns, err := read(s, ""); err != nil || len(turns) != 0 {
		t.Errorf("%+v, %v", turns, err)
	}
	_, s = written(t, append(begun, message("user", "make a file"))...)
	if turns, err := read(s, ""); err != nil || len(turns) != 1 || turns[0].ID != "t1" || turns[0].Prompt != "make a file" {
		t.Errorf("%+v, %v", turns, err)
	}
}
