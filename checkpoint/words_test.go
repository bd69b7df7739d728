package checkpoint

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/workspace"
)

// What a rewind removed is not called the work of a turn.
func TestAPlanNamesRewinds(t *testing.T) {
	f := newFixture(t)
	f.write("a", "1")
	f.before("c", 1)
	f.write("a", "2", "b", "new")
	after := f.after("c", 1)
	ctx := t.Context()
	plan, err := f.w.Plan(ctx, RewindRequest{To: "before:turn:1", Conversation: "c"})
	must(t, err)
	about := func(p *Plan) string {
		var out []string
		for i := range p.Actions {
			a := &p.Actions[i]
			out = append(out, fmt.Sprintf("%s %s: %s", a.Kind, a.Path, a.About()))
		}
		return fmt.Sprint(out)
	}
	if got, want := about(plan), "[restore a: changed in turn 1 delete b: created in turn 1]"; got != want {
		t.Errorf("back: got %s, want %s", got, want)
	}
	_, err = f.w.Rewind(ctx, plan.Request(), plan.Token)
	must(t, err)
	plan, err = f.w.Plan(ctx, RewindRequest{To: after.ID, Conversation: "c"})
	must(t, err)
	if got, want := about(plan), "[restore a: changed by a rewind create b: removed by a rewind]"; got != want {
		t.Errorf("forwards: got %s, want %s", got, want)
	}
}

func TestWordsAboutConflictsAndWhatStays(t *testing.T) {
	file := &workspace.Entry{Kind: workspace.File}
	p := &Plan{Actions: []Action{
		{Path: "a", Kind: Conflict, Writer: &Writer{Class: ByUser}, Reason: "yours, changed since"},
		{Path: "b", Kind: Conflict, Writer: &Writer{Class: ByConversation, Conversation: "01JCX4000000000000000000ZZ", Turn: 3}, writerName: "01JCX4"},
		{Path: "c", Kind: Conflict, Writer: &Writer{Class: ByForgotten}, Reason: "changed between checkpoints that are no longer kept"},
		{Path: "d", Kind: Keep, Why: WhyYours, After: file},
		{Path: "e", Kind: Keep, Why: WhyYours},
		{Path: "f", Kind: Keep, Why: WhyIgnored, After: file},
		{Path: "g", Kind: Keep, After: file},
		{Path: "h", Kind: Delete, Writer: &Writer{Class: ByHand, Turn: 2}, Reason: "yours, saved in a checkpoint"},
		{Path: "i", Kind: Restore, Why: WhyMasked, Reason: "without its sticky bit", Writer: &Writer{Class: ByConversation, Turn: 1}},
	}}
	for i, want := range []string{
		"you changed it after the agent's last write", "changed since in turn 3 of 01JCX4", "changed between checkpoints that are no longer kept",
		"yours", "removed by you", "ignored", "yours", "yours, saved in a checkpoint", "without its sticky bit",
	} {
		if got := p.Actions[i].About(); got != want {
			t.Errorf("%s: got %q, want %q", p.Actions[i].Path, got, want)
		}
	}
	if got, want := fmt.Sprint(p.Kept()), "[{removed by you [e]} {yours [d g]} {ignored [f]} {without set-id and sticky bits, which came from another store [i]}]"; got != want {
		t.Errorf("kept %s, want %s", got, want)
	}
	if got, want := p.LeftWords(), "1 ignored, 3 in conflict, 3 of yours, 1 without bits from another store"; got != want {
		t.Errorf("left %s, want %s", got, want)
	}
	p.request.Choices = map[string]Choice{"a": KeepMine}
	if got := fmt.Sprint(p.Unchosen()); got != "[b c]" {
		t.Errorf("unchosen %s", got)
	}
	p.request.Choice = KeepMine
	if got := p.Unchosen(); len(got) != 0 {
		t.Errorf("unchosen %s", got)
	}
	for _, why := range keptOrder {
		if keptWords[why] == "" || why != whyRemoved && why != whyNoTurn && why != whyInside && countWords[why] == "" {
			t.Errorf("there are no words for %q", why)
		}
	}
}

func TestEffectOnTheConversation(t *testing.T) {
	states := map[blob.ID]int{{1}: 1, {2}: 2, {3}: 5, {4}: 0}
	turns := func(root blob.ID) (int, error) {
		if n, ok := states[root]; ok {
			return n, nil
		}
		return 0, errors.New("damaged")
	}
	for _, c := range []struct {
		from, to blob.ID
		want     string
	}{
		{blob.ID{1}, blob.ID{}, ""},
		{blob.ID{1}, blob.ID{1}, ""},
		{blob.ID{2}, blob.ID{1}, "continues after turn 1; turn 2 stays as a branch"},
		{blob.ID{3}, blob.ID{2}, "continues after turn 2; turns 3-5 stay as a branch"},
		{blob.ID{2}, blob.ID{4}, "starts over; turns 1-2 stay as a branch"},
		{blob.ID{1}, blob.ID{3}, "continues after turn 5; what came since stays as a branch"},
		{blob.ID{9}, blob.ID{2}, "continues after turn 2; what came since stays as a branch"},
		{blob.ID{2}, blob.ID{9}, "goes to another state; what came since stays as a branch"},
	} {
		if got := (&Plan{RootBefore: c.from, RootAfter: c.to}).Effect(turns); got != c.want {
			t.Errorf("from %v to %v: got %q, want %q", c.from[0], c.to[0], got, c.want)
		}
	}
}

// The checkpoint before a turn says of the changes that it found what their author is held
// for.
func TestWhoseChangesACheckpointFound(t *testing.T) {
	f := newFixture(t)
	found := func(what string, rec *Record, want string) {
		t.Helper()
		if got := rec.Found(); got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	f.write("a", "1")
	found("the first", f.before("c", 1), "")
	f.write("a", "2")
	found("beside a turn at work", f.before("d", 1), "found changed by a turn at work")
	f.write("a", "3")
	found("beside two", f.before("e", 1), "found changed while several turns were at work")
	f.after("e", 1)
	f.after("d", 1)
	f.write("a", "4")
	found("after a turn", f.after("c", 1), "")
	found("nothing", f.before("c", 2), "")
	f.after("c", 2)
	f.write("a", "5")
	found("between turns", f.before("c", 3), "found changed by you")
}
