package checkpoint

import (
	"context"
	"fmt"
	"testing"

	"github.com/stet-dev/stet/blob"
)

// After an undo the user's edit is back, and it is still the user's.
func TestUndoneEditsStayTheUsers(t *testing.T) {
	f := newFixture(t)
	f.write("base.txt", "base\n")
	f.before("c", 1)
	f.write("agent.txt", "agent\n")
	c2 := f.after("c", 1)
	f.before("c", 2)
	f.write("later.txt", "agent\n")
	f.after("c", 2)
	f.write("later.txt", "agent\nuser\n")

	rewound := f.rewind(RewindRequest{To: c2.ID, Choice: Theirs})
	if _, err := f.w.Undo(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if got := f.read("later.txt"); got != "agent\nuser\n" {
		t.Fatalf("after the undo later.txt = %q", got)
	}
	same(t, "plan to before the edit", lines(f.plan(RewindRequest{To: c2.ID})), []string{"conflict later.txt"})
	// Since that checkpoint nobody but the user has written the file.
	same(t, "plan to the rewind", lines(f.plan(RewindRequest{To: rewound.Record.ID})), []string{"keep later.txt"})
}

// What a rewind of the agent's own work restores is the agent's again.
func TestRedoneWorkStaysTheAgents(t *testing.T) {
	f := newFixture(t)
	f.write("base.txt", "base\n")
	c1 := f.before("c", 1)
	f.write("agent.txt", "agent\n")
	f.after("c", 1)
	f.rewind(RewindRequest{To: c1.ID})
	if _, err := f.w.Undo(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	same(t, "plan", lines(f.plan(RewindRequest{To: c1.ID})), []string{"delete agent.txt"})
}

// After a rewind and its undo every turn still has what it wrote, so that one of
// them can be taken out.
func TestUndoneTurnsStayApart(t *testing.T) {
	f := newFixture(t)
	f.write("a.txt", "base\n", "b.txt", "base\n")
	f.before("c", 1)
	f.write("a.txt", "one\nbase\n")
	first := f.after("c", 1)
	f.before("c", 2)
	f.write("a.txt", "one\nbase\ntwo\n", "new.txt", "two\n")
	second := f.after("c", 2)
	f.before("c", 3)
	f.remove("new.txt") // and back again
	f.after("c", 3)
	f.rewind(RewindRequest{To: second.ID})
	f.before("c", 3)
	f.write("b.txt", "three\n", "new.txt", "two\nthree\n")
	f.after("c", 3)
	plans := func() (all []string) {
		for turn := range uint64(3) {
			p := f.plan(RewindRequest{OnlyTurn: turn + 1, Conversation: "c"})
			for i, line := range lines(p) {
				all = append(all, fmt.Sprint(turn+1, " ", line, " ", p.Actions[i].Writer.Turn))
			}
		}
		return all
	}
	want := plans()
	same(t, "the first plans", want, []string{
		"1 restore a.txt 2", "2 restore a.txt 2", "2 conflict new.txt 3", "3 restore b.txt 3", "3 restore new.txt 3",
	})
	f.rewind(RewindRequest{To: first.ID})
	for range 2 { // the second undo takes the redo back
		if _, err := f.w.Undo(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		same(t, "after the undo", plans(), want)
		if _, err := f.w.Redo(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
}

// damaged refuses one blob, as a store does whose disk has flipped a bit.
type damaged struct {
	blob.Store
	id blob.ID
}

func (d *damaged) Get(ctx context.Context, id blob.ID) ([]byte, error) {
	if id == d.id {
		return nil, blob.Corrupt(id, "flipped")
	}
	return d.Store.Get(ctx, id)
}

func TestDamagedOldContentDoesNotBlockCheckpoints(t *testing.T) {
	f := newFixture(t)
	f.write("a.txt", "old\n")
	f.save(Request{})
	f.blobs = &damaged{Store: f.blobs, id: blob.Sum([]byte("old\n"))}
	f.reopen()
	f.write("a.txt", "new\n")
	if rec := f.save(Request{}); rec.FilesChanged != 1 {
		t.Errorf("%d files changed, want 1", rec.FilesChanged)
	}
}
