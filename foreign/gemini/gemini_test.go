package gemini_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/gemini"
	"github.com/stet-dev/stet/internal/testenv"
)

var ctx = context.Background()

const head = `{"sessionId":"s1","projectHash":"p","startTime":"2026-11-16T11:00:00Z","lastUpdated":"2026-11-16T11:00:00Z","kind":"main"}`

func user(id, text string) string {
	return fmt.Sprintf(`{"id":%q,"timestamp":"2026-11-16T12:00:00Z","type":"user","content":[{"text":%q}]}`, id, text)
}

func reply(id, text string) string {
	return fmt.Sprintf(`{"id":%q,"timestamp":"2026-11-16T12:00:01Z","type":"gemini","content":%q,"model":"m"}`, id, text)
}

func set(messages ...string) string {
	return `{"$set":{"messages":[` + strings.Join(messages, ",") + `]}}`
}

func session(t *testing.T, lines ...string) foreign.Session {
	t.Helper()
	path := filepath.Join(t.TempDir(), "session-2026-11-16T11-00-s1.jsonl")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return foreign.Session{Agent: "gemini", ID: "s1", Path: path, Workspace: "/workspace"}
}

func read(s foreign.Session, from foreign.Mark) (found []foreign.Turn, errs []error) {
	for turn, err := range gemini.New().Turns(ctx, s, from) {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		found = append(found, turn)
	}
	return found, errs
}

// tree writes turns with what they follow and the number of their steps.
func tree(turns []foreign.Turn) string {
	var out []string
	for _, turn := range turns {
		out = append(out, fmt.Sprintf("%s<%s:%d", turn.ID, turn.Follows, len(turn.Steps)))
	}
	return strings.Join(out, " ")
}

func TestFold(t *testing.T) {
	ctxt := user("c", "<session_context> x")
	for _, c := range []struct {
		name  string
		lines []string
		want  string
	}{
		{"rewound", []string{user("u1", "one"), reply("g1", "r"), user("u2", "two"), reply("g2", "r"), `{"$rewindTo":"u2"}`, user("u3", "three"), reply("g3", "r")},
			"u1<:1 u2<u1:1 u3<u1:1"},
		{"rewound to the beginning", []string{user("u1", "one"), reply("g1", "r"), `{"$rewindTo":"u1"}`, user("u2", "two")},
			"u1<:1 u2<(beginning):0"},
		{"rewound inside a turn", []string{user("u1", "one"), reply("g1", "r"), `{"$rewindTo":"g1"}`, user("u2", "two")},
			"u1<:1 u2<u1:0"},
		{"rewound to an unknown message", []string{user("u1", "one"), `{"$rewindTo":"x"}`, user("u2", "two")},
			"u1<:0 u2<(beginning):0"},
		{"resumed", []string{user("u1", "one"), reply("g1", "r"), head, set(ctxt), set(ctxt, user("u1", "one"), `{"id":"g1","type":"gemini","content":[{"text":"r"}]}`), user("u2", "two")},
			"u1<:1 u2<u1:0"},
		{"resumed after a rewind", []string{user("u1", "one"), user("u2", "two"), head, set(ctxt), set(ctxt, user("u1", "one")), user("u3", "three")},
			"u1<:0 u2<u1:0 u3<u1:0"},
		{"only a list", []string{set(ctxt, user("u1", "one"), reply("g1", "r"), user("u2", "two"), reply("g2", "r")), user("u3", "three")},
			"u1<:1 u2<u1:1 u3<u2:0"},
		{"compressed", []string{user("u1", "one"), reply("g1", "r"), set(ctxt, user("k", "<state_snapshot>all"), reply("kg", "Got it.")), user("u2", "two")},
			"u1<:1 k<u1:1 u2<k:0"},
		{"changed later", []string{user("u1", "one"), reply("g1", "r"), user("u2", "two"), reply("g2", "r"), `{"id":"g1","type":"gemini","content":"r","toolCalls":[{"id":"t","name":"read_file","args":{}}]}`},
			"u1<:2 u2<u1:1"},
		{"commands and notes of the CLI", []string{user("x", "/help"), user("u1", "one"), `{"id":"i","type":"info","content":"note"}`, reply("g1", "r"), user("y", "?")},
			"u1<:1"},
		{"a list that cannot be read", []string{user("u1", "one"), reply("g1", "r"), set(ctxt), `{"$set":{"messages":[`, user("u2", "two")},
			"u1<:1 u2<u1:0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := session(t, append([]string{head}, c.lines...)...)
			turns, errs := read(s, "")
			if got := tree(turns); got != c.want {
				t.Errorf("got %s, want %s, %v", got, c.want, errs)
			}
			for i, turn := range turns {
				rest, errs := read(s, turn.Mark)
				if errs != nil {
					if last := errs[len(errs)-1]; !errors.Is(last, foreign.ErrMark) && !foreign.Unreadable(last) {
						t.Errorf("from mark %q: %v", turn.Mark, errs)
					}
					continue
				}
				if turn.Done {
					i++
				}
				if got, want := tree(rest), tree(turns[i:]); got != want {
					t.Errorf("from mark %q: got %s, want %s", turn.Mark, got, want)
				}
			}
		})
	}
}

func TestResumptionIsReadFromTheMark(t *testing.T) {
	ctxt := user("c", "<session_context> x")
	s := session(t, head, user("u1", "one"), reply("g1", "r"))
	turns, _ := read(s, "")
	f, err := os.OpenFile(s.Path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fmt.Fprintln(f, strings.Join([]string{head, set(ctxt), set(ctxt, user("u1", "one"), reply("g1", "r")), user("u2", "two"), reply("g2", "r")}, "\n"))
	rest, errs := read(s, turns[0].Mark)
	if got := tree(rest); got != "u2<u1:1" || errs != nil {
		t.Errorf("got %s, %v", got, errs)
	}
}

func TestRewindBehindTheMark(t *testing.T) {
	s := session(t, head, user("u1", "one"), reply("g1", "r"), user("u2", "two"), reply("g2", "r"), `{"$rewindTo":"u1"}`, user("u3", "three"))
	turns, _ := read(s, "")
	if _, errs := read(s, turns[1].Mark); len(errs) != 1 || !errors.Is(errs[0], foreign.ErrMark) {
		t.Errorf("got %v", errs)
	}
}

func TestCutOfARewoundTurn(t *testing.T) {
	s := session(t, head, user("u1", "one"), reply("g1", "r"), user("u2", "two"), reply("g2", "r"), `{"$rewindTo":"u2"}`, user("u3", "three"), reply("g3", "r"))
	before, _ := os.ReadFile(s.Path)
	turns, _ := read(s, "")
	for i, want := range []string{"u1<:1", "u1<:1 u2<u1:1", "u1<:1 u2<u1:1 u3<u1:1"} {
		c, err := gemini.New().Cut(ctx, foreign.Host{}, s, turns[i])
		if err != nil {
			t.Fatal(err)
		}
		cut := s
		cut.Path = c.Created[0]
		if kept, errs := read(cut, ""); tree(kept) != want || errs != nil {
			t.Errorf("turn %d: got %s, want %s, %v", i, tree(kept), want, errs)
		}
		if data, _ := os.ReadFile(c.Created[0]); strings.Contains(string(data), `"s1"`) || !strings.Contains(string(data), c.Session) {
			t.Errorf("turn %d keeps the old id", i)
		}
	}
	if after, _ := os.ReadFile(s.Path); string(after) != string(before) {
		t.Error("the session was changed")
	}
	if _, err := gemini.New().Cut(ctx, foreign.Host{}, s, foreign.Turn{ID: "no"}); !errors.Is(err, foreign.ErrCannotCut) {
		t.Errorf("an unknown turn: %v", err)
	}
}

func TestCutCopiesLongLines(t *testing.T) {
	s := session(t, head, user("u1", strings.Repeat("long ", 50_000)), reply("g1", "r"), user("u2", "two"))
	turns, _ := read(s, "")
	c, err := gemini.New().Cut(ctx, foreign.Host{}, s, turns[0])
	if err != nil {
		t.Fatal(err)
	}
	cut := s
	cut.Path = c.Created[0]
	if kept, errs := read(cut, ""); len(kept) != 1 || kept[0].Prompt != turns[0].Prompt || errs != nil {
		t.Errorf("got %d turns, %v", len(kept), errs)
	}
}

func TestSubagentIsNamedByItsCall(t *testing.T) {
	for s, err := range gemini.New().Sessions(ctx, home(t)) {
		if err != nil {
			t.Fatal(err)
		}
		turns, _ := read(s, "")
		if s.ID == mainID {
			if call := turns[2].Steps[0].Call; call.Subagent != subID || !strings.HasPrefix(call.Task, "helper") {
				t.Errorf("call: %+v", call)
			}
			continue
		}
		if turns[0].Automatic || !turns[1].Automatic {
			t.Errorf("automatic: %v, %v", turns[0].Automatic, turns[1].Automatic)
		}
	}
}

func TestConnectionAsksForNoModelEvents(t *testing.T) {
	changes, err := gemini.New().Connection(foreign.Host{Home: "/h"}, foreign.Connect{Command: []string{"/a b/stet", "hook", "gemini"}})
	if err != nil || len(changes) != 1 || len(changes[0].Hooks) != 6 {
		t.Fatalf("got %+v, %v", changes, err)
	}
	for _, e := range changes[0].Hooks {
		if strings.Contains(e.List[1], "Model") || !strings.Contains(e.Value, `'/a b/stet' hook gemini `+e.List[1]) {
			t.Errorf("%v: %s", e.List, e.Value)
		}
	}
}

// TestAMissingProgramDoesNotStopTheAgent runs the configured commands without their
// program. Gemini CLI takes an exit code above 1 as a reason to stop.
func TestAMissingProgramDoesNotStopTheAgent(t *testing.T) {
	shell, err := exec.LookPath("sh")
	testenv.SkipWithout(t, "sh", err)
	changes, err := gemini.New().Connection(foreign.Host{Home: "/h"}, foreign.Connect{Command: []string{"/not there/stet", "hook", "gemini"}})
	if err != nil || len(changes) != 1 || len(changes[0].Hooks) == 0 {
		t.Fatalf("%+v, %v", changes, err)
	}
	for _, hook := range changes[0].Hooks {
		var entry struct{ Hooks []struct{ Command string } }
		if err := json.Unmarshal([]byte(hook.Value), &entry); err != nil || len(entry.Hooks) != 1 {
			t.Fatalf("%s: %v", hook.Value, err)
		}
		if err := exec.Command(shell, "-c", entry.Hooks[0].Command).Run(); err != nil {
			t.Errorf("%s: %v", entry.Hooks[0].Command, err)
		}
	}
}
