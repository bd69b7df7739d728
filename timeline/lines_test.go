package timeline_test

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/timeline"
)

func TestARewindLeavesBehindWhatCameAfterItsTarget(t *testing.T) {
	f := newFixture(t)
	f.take("a", 1)
	c2 := f.take("a", 2)
	f.take("a", 3)
	f.same("a", "c1 c2 c3*")
	done := f.rewind(c2, "a")
	f.same("a", "c1 c2* c3x1")
	for _, e := range f.read(timeline.Scope{Conversation: "a"}).Entries {
		switch {
		case e.Record.Name() == "c3" && !e.LeftAt.Equal(done.Operation.Time):
			t.Errorf("left behind at %v, want %v", e.LeftAt, done.Operation.Time)
		case e.Record.Kind == checkpoint.Rewound && e.Continues != c2:
			t.Errorf("the rewind continues %q, want its target %q", e.Continues, c2)
		}
	}
	if _, err := f.w.Undo(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	f.same("a", "c1 c2 c3*")
	if _, err := f.w.Redo(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	f.same("a", "c1 c2* c3x1")
	f.take("a", 3)
	f.same("a", "c1 c2 c3x1 c10*")
}

// What came between a rewind of files and its undo is in the files, so it stands.
func TestAnUndoLeavesWhatCameSinceItsRewind(t *testing.T) {
	f := newFixture(t)
	f.take("a", 1)
	c2 := f.take("a", 2)
	f.take("a", 3)
	f.rewind(c2, "a") // c4 and c5
	f.take("b", 1)
	f.take("a", 4)
	f.same("a", "c1 c2 c3x1 c7*")
	back := func(do func(context.Context, *checkpoint.UndoOptions) (*checkpoint.Applied, error)) {
		t.Helper()
		_, err := do(t.Context(), &checkpoint.UndoOptions{Choice: checkpoint.Theirs})
		f.must(err)
	}
	back(f.w.Undo)
	f.same("a", "c1 c2 c3 c7*")
	f.same("b", "c6*")
	back(f.w.Redo)
	f.same("a", "c1 c2 c3x1 c7*")
	back(f.w.Undo)
	f.same("a", "c1 c2 c3 c7*")
	f.take("a", 5)
	f.same("a", "c1 c2 c3 c7 c14*")
}

func TestTwoRewoundBranchesAreTwo(t *testing.T) {
	f := newFixture(t)
	c1 := f.take("a", 1)
	f.take("a", 2)
	f.take("a", 3)
	f.rewind(c1, "a") // c4 and c5
	f.take("a", 2)    // c6
	f.take("a", 3)
	f.rewind(c1, "a") // c8 and c9
	f.same("a", "c1* c2x1 c3x1 c6x2 c7x2")
	f.same("", "c1* c2x1 c3x1 c6x2 c7x2")
	f.take("a", 2)
	f.same("a", "c1 c2x1 c3x1 c6x2 c7x2 c10*")
}

func TestABranchOfABranch(t *testing.T) {
	f := newFixture(t)
	c1 := f.take("a", 1)
	c2 := f.take("a", 2)
	f.take("a", 3)
	f.rewind(c2, "a") // c4 and c5
	f.take("a", 3)    // c6
	f.rewind(c1, "a")
	f.same("a", "c1* c2x1 c3x1 c6x2")
}

// What stood before a target that is no longer kept still stands, also when the work
// goes on and is rewound again.
func TestARewindToAForgottenTarget(t *testing.T) {
	f := newFixture(t)
	f.take("a", 1)
	c2 := f.take("a", 2)
	f.take("a", 3)
	f.rewind(c2, "a") // c4 and c5
	f.forget(c2)
	f.same("a", "c1* (1)c3x1")
	c6 := f.take("a", 3)
	f.take("a", 4)
	f.rewind(c6, "a")
	f.same("a", "c1 (1)c3x1 c6* c7x2")
}

// A forgotten target that lay in a branch brings back that branch, not the line that
// stood meanwhile.
func TestARewindIntoABranchWhoseTargetIsForgotten(t *testing.T) {
	f := newFixture(t)
	c1 := f.take("a", 1)
	f.take("a", 2)
	c3 := f.take("a", 3)
	f.rewind(c1, "a") // c4 and c5
	f.take("a", 2)    // c6
	f.rewind(c3, "a")
	f.forget(c3)
	f.same("a", "c1 c2* c6x2") // the present that the first rewind saved is branch 1
}

// A rewind counts although the checkpoint that it made is no longer kept.
func TestAForgottenRewind(t *testing.T) {
	f := newFixture(t)
	c1 := f.take("a", 1)
	f.take("a", 2)
	done := f.rewind(c1, "a") // c3 and c4
	f.take("a", 2)
	f.forget(done.Saved.ID, done.Record.ID)
	f.same("a", "c1 c2x1 (2)c5*")
}

// A rewind to a checkpoint of no conversation takes back everybody's work.
func TestARewindOfEverybodysWork(t *testing.T) {
	f := newFixture(t)
	c1 := f.take("", 0)
	f.take("a", 1)
	f.take("b", 1)
	f.take("a", 2)
	f.rewind(c1, "")
	f.same("a", "c2x1 c4x1")
	f.same("b", "c3x1")
	f.same("", "c1* c2x1 c3x2 c4x1")
}

// A rewind of one conversation leaves the line of another as it is, and what that one
// is rewound to later.
func TestARewindOfAnotherConversation(t *testing.T) {
	f := newFixture(t)
	c1 := f.take("a", 1)
	f.take("b", 1)
	f.take("a", 2)
	f.rewind(c1, "a") // c4 and c5
	f.same("b", "c2*")
	f.same("", "c1* c2 c3x1")
	c6 := f.take("b", 2)
	f.take("b", 3)
	f.rewind(c6, "b")
	f.same("b", "c2 c6* c7x1")
	f.same("", "c1 c2 c3x1 c6* c7x2")
}

func TestARewindInAnotherWorkspace(t *testing.T) {
	f := newFixture(t)
	c1 := f.take("a", 1)
	other := f.open()
	f.takeIn(other, "a", 2)
	f.takeIn(other, "a", 3)
	f.take("a", 4)
	f.rewind(c1, "a")
	got := text(f.read(timeline.Scope{Conversation: "a"}))
	if want := "c1* c1 c2* c2x1"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestTakingOutOneTurnLeavesNothingBehind(t *testing.T) {
	f := newFixture(t)
	f.take("", 0)
	f.take("a", 1)
	f.take("a", 2)
	plan, err := f.w.Plan(t.Context(), checkpoint.RewindRequest{OnlyTurn: 2, Conversation: "a", Choice: checkpoint.MergeMarkers})
	f.must(err)
	if _, err := f.w.Rewind(t.Context(), plan.Request(), plan.Token); err != nil {
		t.Fatal(err)
	}
	f.same("a", "c2 c3")
	// Its undo takes nothing back that came after it.
	f.must(os.WriteFile(filepath.Join(f.w.Path(), "later"), []byte("x"), 0o600))
	_, err = f.w.Checkpoint(t.Context(), checkpoint.Request{Conversation: "a", Turn: 3, Side: checkpoint.After})
	f.must(err)
	f.same("a", "c2 c3 c6*")
	_, err = f.w.Undo(t.Context(), nil)
	f.must(err)
	f.same("a", "c2 c3 c6")
}

// The turn that was taken out stands, so what took it out is shown, also later, and what undid
// and repeated that.
func TestWhatTookOutOneTurnIsShown(t *testing.T) {
	f := newFixture(t)
	f.take("", 0)
	f.take("a", 1)
	f.take("a", 2)
	plan, err := f.w.Plan(t.Context(), checkpoint.RewindRequest{OnlyTurn: 2, Conversation: "a", Choice: checkpoint.MergeMarkers})
	f.must(err)
	_, err = f.w.Rewind(t.Context(), plan.Request(), plan.Token)
	f.must(err)
	_, err = f.w.Undo(t.Context(), nil)
	f.must(err)
	_, err = f.w.Redo(t.Context(), nil)
	f.must(err)
	f.take("a", 3)
	var got []string
	for _, e := range f.read(timeline.Scope{Workspace: f.w.ID()}).Folded() {
		got = append(got, cmp.Or(e.Operation, e.Record.Place()))
	}
	slices.Reverse(got)
	if want := []string{"", "after turn 1", "after turn 2", "rewind of turn 2", "undo of rewind of turn 2", "redo of rewind of turn 2", "after turn 3"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A rewind of some paths goes to its target with these only: what came after it stands,
// and the next checkpoint continues it.
func TestARewindOfSomePathsLeavesNothingBehind(t *testing.T) {
	f := newFixture(t)
	c1 := f.take("a", 1)
	f.take("a", 2)
	f.take("a", 3)
	plan, err := f.w.Plan(t.Context(), checkpoint.RewindRequest{
		To: c1, Conversation: "a", Choice: checkpoint.Theirs, Scope: checkpoint.FilesOnly, Paths: []string{"file-a"},
	})
	f.must(err)
	done, err := f.w.Rewind(t.Context(), plan.Request(), plan.Token)
	f.must(err)
	if done.Operation.Files != 1 {
		t.Fatalf("%d files changed", done.Operation.Files)
	}
	f.same("a", "c1 c2 c3*")
	f.same("", "c1 c2 c3*")
	_, err = f.w.Undo(t.Context(), nil)
	f.must(err)
	f.same("a", "c1 c2 c3*")
	_, err = f.w.Redo(t.Context(), nil)
	f.must(err)
	f.same("a", "c1 c2 c3*")
	f.take("a", 4)
	f.same("a", "c1 c2 c3 c10*")
	f.rewind(c1, "a")
	f.same("a", "c1* c2x1 c3x1 c10x1")
}
