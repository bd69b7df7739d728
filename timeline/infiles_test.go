package timeline_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
)

// work makes both checkpoints of a turn that writes a file of its own, and returns them.
func (f *fixture) work(conversation string, n uint64) (before, after string) {
	f.t.Helper()
	req := checkpoint.Request{Conversation: conversation, Turn: n, Side: checkpoint.Before, MessageID: fmt.Sprint("prompt-", f.writes)}
	res, err := f.w.Checkpoint(f.t.Context(), req)
	f.must(err)
	f.writes++
	f.must(os.WriteFile(filepath.Join(f.w.Path(), fmt.Sprint(conversation, n)), fmt.Appendln(nil, f.writes), 0o600))
	req.Side = checkpoint.After
	end, err := f.w.Checkpoint(f.t.Context(), req)
	f.must(err)
	return res.Record.ID, end.Record.ID
}

func (f *fixture) undo() {
	f.t.Helper()
	_, err := f.w.Undo(f.t.Context(), nil)
	f.must(err)
}

// reverted compares the reverted turns of conversation a, such as "2 out by rewind".
func (f *fixture) reverted(want ...string) {
	f.t.Helper()
	turns, err := f.Reverted(f.t.Context(), f.w.ID(), "a")
	f.must(err)
	var got []string
	for _, turn := range turns {
		where := "in"
		if turn.Out {
			where = "out"
		}
		got = append(got, fmt.Sprintf("%d %s by %s", turn.Turn, where, turn.By.Kind))
	}
	if !slices.Equal(got, want) {
		f.t.Errorf("reverted %q, want %q", got, want)
	}
}

func TestRevertedTurns(t *testing.T) {
	f := newFixture(t)
	f.work("a", 1)
	before2, after2 := f.work("a", 2)
	before3, after3 := f.work("a", 3)
	f.reverted()
	f.rewind(before3, "a")
	f.reverted("3 out by rewind")
	f.rewind(before2, "a")
	f.reverted("2 out by rewind", "3 out by rewind")
	f.rewind(after2, "a") // forward
	f.reverted("2 in by rewind", "3 out by rewind")
	_, after4 := f.work("a", 4)
	f.work("b", 1)
	f.undo() // turn 4 stays
	f.reverted("2 out by undo", "3 out by rewind")
	f.rewind(after4, "a") // as it was then
	f.reverted("2 in by rewind", "3 out by rewind")
	f.rewind(after3, "a")
	f.reverted("2 in by rewind", "3 in by rewind", "4 out by rewind")
	f.undo()
	_, err := f.w.Redo(f.t.Context(), nil)
	f.must(err)
	f.reverted("2 in by rewind", "3 in by redo", "4 out by redo")
}

// What moves no files, or not those of the conversation, or only some, reverts no turn.
func TestWhatRevertsNoTurn(t *testing.T) {
	f := newFixture(t)
	_, after1 := f.work("a", 1)
	b, _ := f.work("b", 1)
	f.work("a", 2)
	f.rewind(b, "b")
	f.reverted()
	for _, req := range []checkpoint.RewindRequest{
		{To: after1, Conversation: "a", Paths: []string{"a2"}},
		{OnlyTurn: 2, Conversation: "a"},
	} {
		_, err := f.w.Rewind(t.Context(), req, "")
		f.must(err)
		f.reverted()
		f.undo()
		f.reverted()
	}
	f.undo() // the first rewind
	f.reverted()
}

// A number that is given again means the turn that is in the files.
func TestARevertedNumberIsGivenAgain(t *testing.T) {
	f := newFixture(t)
	_, after1 := f.work("a", 1)
	f.work("a", 2)
	f.rewind(after1, "a")
	f.reverted("2 out by rewind")
	f.work("a", 2)
	f.reverted()
	f.rewind(after1, "a")
	f.reverted("2 out by rewind")
}

func TestWhatRemainsOfRevertedTurns(t *testing.T) {
	f := newFixture(t)
	_, after1 := f.work("a", 1)
	f.work("a", 2)
	f.work("a", 3)
	f.must(os.WriteFile(filepath.Join(f.w.Path(), "a3"), []byte("mine\n"), 0o600))
	done, err := f.w.Rewind(t.Context(), checkpoint.RewindRequest{To: after1, Conversation: "a"}, "")
	f.must(err)
	turns, err := f.Reverted(t.Context(), f.w.ID(), "a")
	f.must(err)
	remaining := func(ctx context.Context) []string {
		paths, err := f.Remaining(ctx, turns, done.Operation)
		f.must(err)
		return paths
	}
	if got := remaining(t.Context()); len(turns) != 2 || !slices.Equal(got, []string{"a3"}) {
		t.Errorf("remaining of %d turns: %q", len(turns), got)
	}
	f.forget(after1)
	if got := remaining(t.Context()); got != nil {
		t.Errorf("remaining without the target: %q", got)
	}
}

// A rewind of a conversation that continues another one takes out turns that both share, and
// leaves them behind in both.
func TestSharedTurnsAreReverted(t *testing.T) {
	f := newFixture(t)
	f.service = checkpoint.New(blob.Checked(f.memory), f.rows, &checkpoint.Options{Conversations: checkpoint.Of(f.store)})
	f.w = f.open()
	o := f.create("o")
	f.spend(o, "one", nil)
	f.spend(o, "two", nil)
	_, err := f.store.Fork(t.Context(), "o", 2, conversation.Info{ID: "a"})
	f.must(err)
	_, after1 := f.work("o", 1)
	f.work("o", 2)
	_, after3 := f.work("a", 3)
	f.work("a", 4)
	f.rewind(after3, "a") // nothing that is shared
	f.reverted("4 out by rewind")
	f.same("o", "c1 c2 c3 c4*")
	f.rewind(after1, "a")
	f.reverted("2 out by rewind", "3 out by rewind", "4 out by rewind")
	f.same("o", "c1 c2* c3x1 c4x1")
	f.undo()
	f.reverted("2 in by undo", "3 in by undo", "4 out by rewind")
	f.same("o", "c1 c2 c3 c4*")
}
