package foreigntest

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stet-dev/stet/foreign"
)

// check compares the turns of a session with what is expected.
func check(t *testing.T, want Session, turns []foreign.Turn) {
	t.Helper()
	var prompts, automatic, tools []string
	var kinds []foreign.Tool
	model, says, calls := "", false, map[string]bool{}
	for _, turn := range turns {
		prompts = append(prompts, firstLine(turn.Prompt))
		if turn.Automatic {
			automatic = append(automatic, firstLine(turn.Prompt))
		}
		if turn.Model != "" {
			model = turn.Model
		}
		for _, step := range turn.Steps {
			says = says || want.Says != "" && strings.Contains(step.Text, want.Says)
			if step.Call == nil {
				continue
			}
			tools, kinds = append(tools, step.Call.Name), append(kinds, step.Call.Tool)
			checkCall(t, step.Call)
			if id := step.Call.ID; id != "" && calls[id] {
				t.Errorf("session %s: call %s comes twice", want.ID, id)
			}
			calls[step.Call.ID] = true
		}
		if want.Tokens && len(turn.Steps) > 0 && turn.Usage.Input+turn.Usage.CacheRead+turn.Usage.CacheWrite <= 0 {
			t.Errorf("session %s: turn %s counts no tokens", want.ID, turn.ID)
		}
		if turn.Ended.Before(turn.Started) {
			t.Errorf("session %s: turn %s ended %v, started %v", want.ID, turn.ID, turn.Ended, turn.Started)
		}
	}
	if diff := cmp.Diff(want.Prompts, prompts); diff != "" {
		t.Errorf("session %s: prompts:\n%s", want.ID, diff)
	}
	if diff := cmp.Diff(want.Automatic, automatic); diff != "" {
		t.Errorf("session %s: prompts that no person typed:\n%s", want.ID, diff)
	}
	if diff := cmp.Diff(want.Tools, tools); diff != "" {
		t.Errorf("session %s: tools:\n%s", want.ID, diff)
	}
	if want.Kinds != nil && !slices.Equal(want.Kinds, kinds) {
		t.Errorf("session %s: kinds of tools %v, want %v", want.ID, kinds, want.Kinds)
	}
	if want.Says != "" && !says {
		t.Errorf("session %s: no reply says %q", want.ID, want.Says)
	}
	if model != want.Model {
		t.Errorf("session %s: model %q, want %q", want.ID, model, want.Model)
	}
}

func checkCall(t *testing.T, call *foreign.Call) {
	t.Helper()
	if len(call.Input) > 0 && !json.Valid(call.Input) {
		t.Errorf("call %s: the input is not JSON: %.80s", call.ID, call.Input)
	}
	switch {
	case call.Tool == foreign.ShellTool && call.Command == "",
		call.Tool == foreign.EditTool && len(call.Paths) == 0,
		call.Tool == foreign.TaskTool && call.Task == "":
		t.Errorf("call %s of %s lacks what its kind has: %+v", call.ID, call.Name, call)
	case call.Answered && call.Ended.Before(call.Started):
		t.Errorf("call %s ended %v, started %v", call.ID, call.Ended, call.Started)
	}
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// cut cuts each session after each turn and reads what was made.
func (c Config) cut(t *testing.T) {
	for _, want := range c.Sessions {
		home := c.Home(t)
		session := c.list(t, home)[want.ID]
		count := len(c.read(t, session, ""))
		for k := range count {
			c.cutAfter(t, want, k)
		}
	}
}

func (c Config) cutAfter(t *testing.T, want Session, k int) {
	ctx, h := context.Background(), c.Home(t)
	session := c.list(t, h)[want.ID]
	turns := c.read(t, session, "")
	turn, before := turns[k], snapshot(t, h.Home)
	cont, err := c.Adapter.Cut(ctx, h, session, turn)
	if want.Command == "" || turn.Cut == "" {
		if !errors.Is(err, foreign.ErrCannotCut) {
			t.Errorf("session %s, turn %d cannot be cut, but: %+v, %v", want.ID, k, cont, err)
		}
		return
	}
	if err != nil {
		t.Errorf("session %s: cut after turn %d: %v", want.ID, k, err)
		return
	}
	if len(cont.Command) == 0 || cont.Command[0] != want.Command || cont.Dir == "" {
		t.Errorf("session %s: turn %d continues with %+v", want.ID, k, cont)
	}
	after := snapshot(t, h.Home)
	for path, content := range before {
		if after[path] != content {
			t.Errorf("session %s: the cut after turn %d changed %s", want.ID, k, path)
		}
	}
	created := slices.Sorted(slices.Values(cont.Created))
	if added := without(after, before); !slices.Equal(added, created) {
		t.Errorf("session %s: the cut after turn %d made %v, says %v", want.ID, k, added, created)
	}
	if cont.Session == "" {
		return // the agent makes the session when it starts
	}
	c.checkCut(t, h, cont.Session, chain(turns, k))
}

// checkCut compares a cut session with the turns it must have.
func (c Config) checkCut(t *testing.T, h foreign.Host, id string, want []foreign.Turn) {
	t.Helper()
	made, ok := c.list(t, h)[id]
	if !ok {
		t.Errorf("the cut session %s is not listed", id)
		return
	}
	got := c.read(t, made, "")
	if len(got) != len(want) {
		t.Errorf("the cut session %s has %d turns, want %d", id, len(got), len(want))
		return
	}
	for i := range got {
		if got[i].Prompt != want[i].Prompt || len(got[i].Steps) != len(want[i].Steps) {
			t.Errorf("the cut session %s: turn %d is %q with %d steps, want %q with %d", id, i,
				got[i].Prompt, len(got[i].Steps), want[i].Prompt, len(want[i].Steps))
		}
	}
}

// chain returns the turns that the conversation had after turn k.
func chain(turns []foreign.Turn, k int) []foreign.Turn {
	at := map[string]int{}
	for i, turn := range turns {
		at[turn.ID] = i
	}
	out := []foreign.Turn{turns[k]}
	for turns[k].Follows != foreign.Beginning && k > 0 {
		if before, ok := at[turns[k].Follows]; ok {
			k = before
		} else {
			k--
		}
		out = append(out, turns[k])
	}
	slices.Reverse(out)
	return out
}
