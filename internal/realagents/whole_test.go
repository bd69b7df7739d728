package realagents_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stet-dev/stet/internal/realagents"
)

// The prompts of the whole way.
const (
	one   = "turn one: make files\n::write a.txt one\n::bash echo from-shell > b.txt\n::say first done"
	two   = "turn two: change them\n::read a.txt\n::edit a.txt one => two\n::bash rm b.txt; echo x > c.txt\n::say second done"
	three = "turn three: use a helper\n::task\n::> helper: write a file\n::> ::write sub.txt sub\n::> ::bash echo s > sub2.txt\n::> ::say sub done\n::bash for i in $(seq 300); do [ -e sub2.txt ] && break; sleep 0.1; done\n::say third done"
	alone = "turn three: no helper\n::write sub.txt sub\n::bash echo s > sub2.txt\n::say third done"
	again = "turn two again\n::bash true\n::say again done"
)

// way is the whole way of one agent.
type way struct {
	*realagents.Box
	agent  realagents.Agent
	before map[string]string // what the user had before stet was connected
	third  string            // the third prompt
	conv   string
	resume continuation
}

type continuation struct {
	Session          string
	Prepare, Command []string
	Env              []string
	Dir              string
}

var (
	afterOne   = []string{"README.md: sample", "a.txt: one", "b.txt: from-shell"}
	afterThree = []string{"README.md: sample", "a.txt: two", "c.txt: x", "mine.txt: by a person", "sub.txt: sub", "sub2.txt: s"}
)

func TestTheWholeWay(t *testing.T) {
	each(t, func(t *testing.T, a realagents.Agent) {
		w := &way{Box: realagents.NewBox(t, a), agent: a, third: three}
		if !a.Subagents {
			w.third = alone
		}
		for _, s := range []struct {
			column string
			run    func(t *testing.T)
		}{
			{"connect", w.connect}, {"capture", w.capture}, {"words", w.words}, {"rewind", w.rewind},
			{"carry on", w.carryOn}, {"undo", w.undo}, {"disconnect", w.disconnect},
		} {
			step(t, a.Name, s.column, func(t *testing.T) {
				w.Box = w.In(t)
				s.run(t)
			})
		}
	})
}

func (w *way) files(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, name := range w.Files() {
		data, err := os.ReadFile(filepath.Join(w.Home, filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		out[name] = string(data)
	}
	return out
}

func (w *way) connect(t *testing.T) {
	w.before = w.files(t)
	w.Stet("connect", w.agent.Name, "-y")
	state := "connected"
	if w.agent.Name == "codex" { // until its user approves the hooks; here a flag takes their place
		state = "blocked"
	}
	for _, line := range lines[struct{ Agent, State, Version, Program string }](t, w.Stet("connect", "--list", "--json")) {
		if line.Agent == w.agent.Name && (line.State != state || line.Version == "" || line.Program == "") {
			t.Errorf("connect --list: %+v", line)
		}
	}
}

// lines decodes the lines of a JSON output.
func lines[T any](t *testing.T, text string) []T {
	t.Helper()
	var out []T
	for line := range strings.Lines(text) {
		var v T
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		out = append(out, v)
	}
	return out
}

func want[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func (w *way) capture(t *testing.T) {
	w.Prompt(nil, one)
	want(t, "files after turn 1", w.Tree(), afterOne)
	w.Prompt(w.agent.Again, two)
	w.Write(filepath.Join(w.Workspace, "mine.txt"), "by a person\n")
	w.Prompt(w.agent.Again, w.third)
	want(t, "files after turn 3", w.Tree(), afterThree)
	if _, err := os.Stat(w.Others); err != nil {
		t.Error("the hook of others did not run")
	}
	type change struct{ Path, Op string }
	for n, want := range [][]change{
		{{"a.txt", "add"}, {"b.txt", "add"}}, {{"a.txt", "modify"}, {"b.txt", "remove"}, {"c.txt", "add"}}, {{"sub.txt", "add"}, {"sub2.txt", "add"}},
	} {
		var diff struct{ Files []change }
		text := w.Stet("diff", fmt.Sprintf("before:turn:%d", n+1), fmt.Sprintf("turn:%d", n+1), "--json")
		if err := json.Unmarshal([]byte(text), &diff); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, diff.Files); d != "" {
			t.Errorf("files of turn %d (-want +got):\n%s", n+1, d)
		}
	}
	w.noFailures(t)
}

// noFailures fails if a hook reported a failure.
func (w *way) noFailures(t *testing.T) {
	t.Helper()
	found, _ := filepath.Glob(filepath.Join(w.Home, ".local", "share", "stet.hooks", "failures.jsonl"))
	for _, name := range found {
		data, err := os.ReadFile(name)
		t.Errorf("hooks failed: %s%v", data, err)
	}
}

// conversation is a line of stet ls.
type conversation struct {
	ID, Agent, Workspace, Title string
	Turns                       uint64
}

func (w *way) words(t *testing.T) {
	for _, c := range lines[conversation](t, w.Stet("ls", "--json")) {
		if c.Turns >= 3 {
			w.conv = c.ID
			if c.Agent != w.agent.Name || c.Workspace != w.Workspace {
				t.Errorf("ls: %+v", c)
			}
		}
	}
	if w.conv == "" {
		t.Fatalf("no conversation has three turns:\n%s", w.Stet("ls"))
	}
	text := w.Stet("export", w.conv)
	place := 0
	for _, word := range []string{
		"turn one: make files", "a.txt", "echo from-shell > b.txt", "first done",
		"turn two: change them", "a.txt", "rm b.txt; echo x > c.txt", "second done", "turn three", "third done",
	} {
		i := strings.Index(text[place:], word)
		if i < 0 {
			t.Fatalf("the words lack %q behind byte %d:\n%s", word, place, text)
		}
		place += i
	}
	log := w.Stet("log")
	for _, word := range []string{"turn one: make files", "turn two: change them", "turn three", w.agent.Name} {
		if !strings.Contains(log, word) {
			t.Errorf("the log lacks %q:\n%s", word, log)
		}
	}
}

func (w *way) rewind(t *testing.T) {
	var done struct {
		Partial bool
		CarryOn *continuation `json:"carry_on"`
	}
	text := w.Stet("rewind", "turn:1", "-y", "--json")
	if err := json.Unmarshal([]byte(text), &done); err != nil {
		t.Fatal(err)
	}
	tree := append(slices.Clone(afterOne), "mine.txt: by a person") // is not the agent's
	want(t, "files after the rewind", w.Tree(), tree)
	if done.CarryOn == nil {
		t.Fatalf("the rewind does not say how to carry on: %s", text)
	}
	w.resume = *done.CarryOn
	if printed, line := w.Stet("resume", "--print"), strings.Join(w.resume.Command, " "); !strings.Contains(printed, line) {
		t.Errorf("resume prints %q, the rewind %q", printed, line)
	}
}

func (w *way) carryOn(t *testing.T) {
	if len(w.resume.Prepare) > 0 {
		w.Do(w.resume.Prepare[0], w.resume.Prepare[1:]...)
	}
	known := len(w.Model.Requests())
	w.Prompt(w.resume.Command[1:], again)
	requests := w.Model.Requests()[known:]
	if len(requests) == 0 {
		t.Fatal("the model was not asked")
	}
	for _, r := range requests {
		if strings.Contains(string(r.Body), "turn two: change them") || strings.Contains(string(r.Body), "turn three") || strings.Contains(string(r.Body), "second done") {
			t.Errorf("the model was shown later turns: %.2000s", r.Body)
		}
		if len(r.Tools) > 0 {
			want(t, "prompts that the model was shown", r.Prompts, []string{"turn one: make files", "turn two again"})
		}
	}
	if last := requests[len(requests)-1]; !strings.Contains(string(last.Body), "from-shell") {
		t.Error("the model was not shown the call of turn 1")
	}
	w.noFailures(t)
}

func (w *way) undo(t *testing.T) {
	w.Stet("undo")
	want(t, "files after undo", w.Tree(), afterThree)
}

func (w *way) disconnect(t *testing.T) {
	w.Stet("disconnect", "-y")
	after := w.files(t)
	for name, text := range w.before {
		switch {
		case after[name] == text:
		case w.agent.Rewrites:
			t.Logf("%s was written by %s itself: only the hooks are compared", name, w.agent.Name)
			if strings.Contains(after[name], "hook "+w.agent.Name) || !strings.Contains(after[name], w.Others) {
				t.Errorf("%s is\n%s", name, after[name])
			}
		default:
			t.Errorf("%s (-before +after):\n%s", name, cmp.Diff(text, after[name]))
		}
	}
}
