package checkpoint

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/conversation/graph"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/internal/testenv"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/kv/memkv"
)

// talk is a fixture with a conversation.
func talk(t *testing.T) (*fixture, *conversation.Store, *conversation.Conversation, *memblob.Store) {
	t.Helper()
	blobs := memblob.New()
	rows := memkv.New(blobs)
	f := &fixture{t: t, dir: testenv.TempDir(t), blobs: blob.Checked(blobs), rows: rows}
	store := conversation.New(f.blobs, rows, nil)
	f.opts = Options{IndexDir: testenv.TempDir(t), Conversations: Of(store)}
	f.reopen()
	c, err := store.Create(t.Context(), conversation.Info{ID: "talk", Title: "a talk"})
	must(t, err)
	return f, store, c, blobs
}

// say adds a turn, lets the agent write and makes both checkpoints.
func say(f *fixture, c *conversation.Conversation, n uint64, text string, pairs ...string) *Record {
	f.t.Helper()
	turn, err := conversation.NewTurn(&agentv1.UserMessage{Text: text, MessageId: text})
	must(f.t, err)
	f.save(Request{Conversation: c.ID(), Root: c.Head().Root, MessageID: text, Turn: n, Side: Before})
	f.write(pairs...)
	must(f.t, c.AppendTurn(f.t.Context(), turn))
	save, err := c.Save(f.t.Context(), &conversation.SaveOptions{MessageID: text})
	must(f.t, err)
	return f.save(Request{Conversation: c.ID(), Root: save.Root, MessageID: text, Turn: n, Side: After})
}

// Files and conversation move together, and undo brings both back.
func TestConversationMovesAlong(t *testing.T) {
	f, store, c, _ := talk(t)
	f.write("a", "0\n")
	first := say(f, c, 1, "one", "a", "1\n")
	second := say(f, c, 2, "two", "a", "2\n")
	done := f.rewind(RewindRequest{To: "turn:1"})
	head, err := store.Head(t.Context(), "talk")
	if err != nil || head != first.Root || f.read("a") != "1\n" {
		t.Fatalf("head %s, a %q, %v", head.Short(), f.read("a"), err)
	}
	if done.Plan.RootAfter != first.Root || done.Plan.RootBefore != second.Root {
		t.Errorf("plan moves from %s to %s", done.Plan.RootBefore.Short(), done.Plan.RootAfter.Short())
	}
	branches, err := store.Branches(t.Context(), "talk")
	if err != nil || len(branches) != 2 {
		t.Errorf("branches %v, %v: the old one should stay", branches, err)
	}
	must(t, undo(f))
	if head, err = store.Head(t.Context(), "talk"); err != nil || head != second.Root || f.read("a") != "2\n" {
		t.Errorf("after undo: head %s, a %q, %v", head.Short(), f.read("a"), err)
	}
	f.reopen()
	_, err = f.w.Redo(t.Context(), nil)
	must(t, err)
	if head, err = store.Head(t.Context(), "talk"); err != nil || head != first.Root {
		t.Errorf("after redo: head %s, %v", head.Short(), err)
	}
}

// A conversation that went on after the plan was made does not move, and neither do files.
// Its undo would go to the state of the plan.
func TestConversationWentOn(t *testing.T) {
	f, store, c, _ := talk(t)
	f.write("a", "0\n")
	say(f, c, 1, "one", "a", "1\n")
	say(f, c, 2, "two", "a", "2\n")
	var went blob.ID
	_, err := f.w.Rewind(t.Context(), RewindRequest{To: "turn:1", Agree: func(ctx context.Context, _ *Plan) error {
		turn, err := conversation.NewTurn(&agentv1.UserMessage{Text: "three", MessageId: "three"})
		must(t, err)
		must(t, c.AppendTurn(ctx, turn))
		save, err := c.Save(ctx, nil)
		went = save.Root
		return err
	}}, "")
	if !errors.Is(err, ErrStalePlan) || !errors.Is(err, ErrRolledBack) || f.read("a") != "2\n" {
		t.Errorf("a %q, %v: want a stale plan, rolled back", f.read("a"), err)
	}
	if head, err := store.Head(t.Context(), "talk"); err != nil || head != went {
		t.Errorf("head %s, %v: want %s", head.Short(), err, went.Short())
	}
	f.rewind(RewindRequest{To: "turn:1"})
	must(t, undo(f))
	if head, err := store.Head(t.Context(), "talk"); err != nil || head != went || f.read("a") != "2\n" {
		t.Errorf("after undo: head %s, a %q, %v", head.Short(), f.read("a"), err)
	}
}

// The checkpoint before the first turn was made when the conversation had no state. Going
// there starts the conversation over.
func TestRewindToBeforeTheFirstTurn(t *testing.T) {
	f, store, c, _ := talk(t)
	f.write("a", "0\n")
	before := f.before("talk", 1)
	last := say(f, c, 1, "one", "a", "1\n")
	if !before.Root.IsZero() {
		t.Fatalf("before the first turn there is the state %s", before.Root.Short())
	}
	plan := f.plan(RewindRequest{To: before.ID})
	if got := plan.Effect(func(blob.ID) (int, error) { return 1, nil }); got != "starts over; turn 1 stays as a branch" {
		t.Errorf("effect: %q", got)
	}
	f.rewind(RewindRequest{To: before.ID})
	if head, err := store.Head(t.Context(), "talk"); err != nil || head != conversation.EmptyRoot() || f.read("a") != "0\n" {
		t.Errorf("after the rewind: head %s, a %q, %v", head.Short(), f.read("a"), err)
	}
	must(t, undo(f))
	if head, err := store.Head(t.Context(), "talk"); err != nil || head != last.Root || f.read("a") != "1\n" {
		t.Errorf("after undo: head %s, a %q, %v", head.Short(), f.read("a"), err)
	}
	_, err := f.w.Redo(t.Context(), nil)
	must(t, err)
	if head, err := store.Head(t.Context(), "talk"); err != nil || head != conversation.EmptyRoot() {
		t.Errorf("after redo: head %s, %v", head.Short(), err)
	}
}

// A plan says why the conversation stays where the files go back.
func TestPlanSaysWhyTheConversationStays(t *testing.T) {
	f, _, c, _ := talk(t)
	f.write("a", "0\n")
	before := f.before("talk", 4) // whose earlier turns nobody recorded
	say(f, c, 4, "four", "a", "1\n")
	plan := f.plan(RewindRequest{To: before.ID})
	want := "stays as it is, because c1 has no state of it"
	if got := plan.Effect(func(blob.ID) (int, error) { return 4, nil }); got != want {
		t.Errorf("effect: %q, want %q", got, want)
	}
	if data, err := json.Marshal(plan); err != nil || !strings.Contains(string(data), `"conversation_stays":"`+want+`"`) {
		t.Errorf("JSON: %s, %v", data, err)
	}
	if got := f.plan(RewindRequest{To: before.ID, Scope: FilesOnly}).Effect(nil); got != "" {
		t.Errorf("files only: %q", got)
	}
}

// Files only, and the conversation only.
func TestScopes(t *testing.T) {
	f, store, c, _ := talk(t)
	first := say(f, c, 1, "one", "a", "1\n")
	second := say(f, c, 2, "two", "a", "2\n")
	f.rewind(RewindRequest{To: first.ID, Scope: FilesOnly})
	if head, _ := store.Head(t.Context(), "talk"); head != second.Root || f.read("a") != "1\n" {
		t.Errorf("files only: head %s, a %q", head.Short(), f.read("a"))
	}
	must(t, undo(f))
	f.rewind(RewindRequest{To: first.ID, Scope: ConversationOnly})
	if head, _ := store.Head(t.Context(), "talk"); head != first.Root || f.read("a") != "2\n" {
		t.Errorf("conversation only: head %s, a %q", head.Short(), f.read("a"))
	}
	plain := newFixture(t)
	plain.save(Request{Conversation: "x"})
	if _, err := plain.w.Plan(t.Context(), RewindRequest{To: "c1", Scope: Both}); !errors.Is(err, ErrNoConversations) {
		t.Errorf("without conversations: %v", err)
	}
}

// If the conversation cannot move, neither do the files.
func TestConversationRefuses(t *testing.T) {
	f, _, c, _ := talk(t)
	first := say(f, c, 1, "one", "a", "1\n")
	say(f, c, 2, "two", "a", "2\n")
	refused := errors.New("refused")
	f.opts.Conversations = refusing{f.opts.Conversations, refused}
	f.reopen()
	before := testenv.Snapshot(t, f.dir)
	if _, err := f.w.Rewind(t.Context(), RewindRequest{To: first.ID}, ""); !errors.Is(err, refused) || !errors.Is(err, ErrRolledBack) {
		t.Errorf("got %v", err)
	}
	f.expect(before)
}

func TestFork(t *testing.T) {
	f, store, c, _ := talk(t)
	first := say(f, c, 1, "one", "a", "1\n")
	say(f, c, 2, "two", "a", "2\n")
	id, err := f.w.Fork(t.Context(), first.ID, "", "me")
	must(t, err)
	if head, err := store.Head(t.Context(), id); err != nil || head != first.Root || id == "talk" {
		t.Errorf("fork %s begins with %s, %v", id, head.Short(), err)
	}
	for op, err := range f.w.s.Operations(t.Context()) {
		if err != nil || op.Kind != OpFork || op.Conversation != id {
			t.Errorf("log has %+v, %v", op, err)
		}
		break
	}
}

// collect removes what neither conversations nor checkpoints refer to.
func collect(f *fixture, store *conversation.Store, blobs *memblob.Store) blob.SweepResult {
	f.t.Helper()
	ctx := f.t.Context()
	generation, err := blobs.Begin(ctx)
	must(f.t, err)
	live := new(graph.Set)
	roots := conversation.Readable(ctx, []conversation.Roots{store.Roots, f.w.s.Roots}, func(err error) { f.t.Error(err) })
	must(f.t, graph.Walk(ctx, f.blobs, roots, &graph.Options{Seen: live}, func(graph.Node) error { return nil }))
	res, err := blobs.Sweep(ctx, generation, blob.SweepOptions{Live: live.Has})
	must(f.t, err)
	return res
}

// A collector that goes by Roots takes nothing that a rewind needs.
func TestRootsKeepEverything(t *testing.T) {
	f, store, c, blobs := talk(t)
	f.write("a", "0\n", "d/e/f", "f\n", ".gitignore", "*.log\n", "x.log", "x\n")
	first := say(f, c, 1, "one", "a", "1\n", "d/e/f", "1\n")
	say(f, c, 2, "two", "a", "2\n", "d/e/g", "2\n")
	at2 := testenv.Snapshot(t, f.dir)
	f.rewind(RewindRequest{To: first.ID})
	at1 := testenv.Snapshot(t, f.dir)
	must(t, f.blobs.Put(t.Context(), blob.New([]byte("garbage"))))
	res := collect(f, store, blobs)
	if res.Removed == 0 {
		t.Errorf("nothing was collected: %+v", res)
	}
	f.reopen()
	must(t, undo(f))
	f.expect(at2)
	f.rewind(RewindRequest{To: first.ID})
	f.expect(at1)
}

// A capture whose old blobs a collector took reads everything again.
func TestCollectedUnderneath(t *testing.T) {
	f, store, _, blobs := talk(t)
	f.write("a", "0\n", "b", "0\n")
	rec := f.save(Request{})
	must(t, f.dropCheckpoint(rec.ID))
	collect(f, store, blobs)
	f.write("a", "1\n")
	c2 := f.save(Request{})
	f.write("b", "2\n")
	f.save(Request{})
	f.rewind(RewindRequest{To: c2.ID})
	if f.read("a") != "1\n" || f.read("b") != "0\n" {
		t.Errorf("a %q, b %q", f.read("a"), f.read("b"))
	}
}

// What a row needs is given without a look into its tree.
func TestNeedsOfEachRow(t *testing.T) {
	f := newFixture(t)
	f.write("a", "1")
	rec := f.save(Request{Conversation: "c"})
	damaged := keyspace.Checkpoint("zz")
	must(t, f.rows.Commit(t.Context(), &kv.Batch{Set: []kv.Set{{Key: damaged, Value: []byte("\xff")}}}))
	var trees []blob.ID
	bad := 0
	for needs, err := range f.w.s.Needs(t.Context()) {
		switch {
		case kv.Damaged(err):
			bad++
		case err != nil:
			t.Fatal(err)
		case needs.Checkpoint != nil && needs.Checkpoint.ID == rec.ID:
			trees = append(trees, needs.Tree)
		}
	}
	if bad != 1 || len(trees) != 1 || trees[0] != rec.Tree {
		t.Errorf("trees %v, %d damaged", trees, bad)
	}
}

// A plan that moves only files does not depend on the conversation: a user who agrees to
// it in the next turn agrees to the same plan. One that moves both does.
func TestPlanOfFilesOutlivesATurn(t *testing.T) {
	f, _, c, _ := talk(t)
	f.write("a", "0\n")
	say(f, c, 1, "one", "a", "1\n")
	say(f, c, 2, "two", "a", "2\n")
	files := f.plan(RewindRequest{To: "turn:1", Scope: FilesOnly})
	both := f.plan(RewindRequest{To: "turn:1"})
	say(f, c, 3, "yes, please")
	if _, err := f.w.Rewind(t.Context(), both.Request(), both.Token); !errors.Is(err, ErrStalePlan) {
		t.Errorf("rewind of files and conversation: %v, want ErrStalePlan", err)
	}
	if _, err := f.w.Rewind(t.Context(), files.Request(), files.Token); err != nil || f.read("a") != "1\n" {
		t.Errorf("rewind of files: %v, a has %q", err, f.read("a"))
	}
}

// A redo returns to the state before the undo: what others did between the rewind and the
// undo is as it was, in the conversation and in the files, however often it is repeated.
func TestRedoReturnsToBeforeTheUndo(t *testing.T) {
	f, store, c, _ := talk(t)
	f.write("a", "0\n", "e", "0\n")
	first := say(f, c, 1, "one", "a", "1\n", "e", "1\n")
	second := say(f, c, 2, "two", "a", "2\n", "e", "2\n")
	f.rewind(RewindRequest{To: first.ID})
	c, err := store.Open(t.Context(), "talk")
	must(t, err)
	third := say(f, c, 2, "three", "b", "3\n")
	f.write("a", "mine\n")
	want := func(what string, root blob.ID, a, e string) {
		t.Helper()
		head, err := store.Head(t.Context(), "talk")
		must(t, err)
		if head != root || f.read("a") != a || f.read("e") != e || f.read("b") != "3\n" {
			t.Errorf("%s: head %s, want %s; a %q, e %q, b %q", what, head.Short(), root.Short(), f.read("a"), f.read("e"), f.read("b"))
		}
	}
	back := func(do func(*Workspace, *UndoOptions) (*Applied, error), choice Choice) *Applied {
		t.Helper()
		f.reopen()
		done, err := do(f.w, &UndoOptions{Choice: choice})
		must(t, err)
		return done
	}
	undo := func(w *Workspace, o *UndoOptions) (*Applied, error) { return w.Undo(t.Context(), o) }
	redo := func(w *Workspace, o *UndoOptions) (*Applied, error) { return w.Redo(t.Context(), o) }
	undone := back(undo, Theirs)
	want("undo", second.Root, "2\n", "2\n")
	redone := back(redo, "")
	want("redo", third.Root, "mine\n", "1\n")
	if redone.Operation.Of != undone.Operation.Of || redone.Operation.Target != undone.Saved.ID {
		t.Errorf("redo of op%d to %s, want of op%d to %s", redone.Operation.Of, redone.Operation.Target, undone.Operation.Of, undone.Saved.ID)
	}
	back(undo, "")
	want("undo again", second.Root, "2\n", "2\n")
	f.write("e", "mine\n")
	back(redo, KeepMine)
	want("redo that keeps a file", third.Root, "mine\n", "mine\n")
	back(undo, "")
	want("undo that keeps it, too", second.Root, "2\n", "mine\n")
	if err := func() error { _, err := f.w.Undo(t.Context(), nil); return err }(); !errors.Is(err, ErrNothing) {
		t.Errorf("one undo too many: %v", err)
	}
}

// A conversation that a rewind did not move stays where it is when the rewind is undone and
// redone, with the turns that came since. They are no branch that was left behind.
func TestUndoLeavesAConversationThatStayed(t *testing.T) {
	for name, req := range map[string]RewindRequest{
		"already there": {To: "turn:1", Exact: true},
		"only files":    {To: "turn:1", Exact: true, Scope: FilesOnly},
	} {
		t.Run(name, func(t *testing.T) {
			f, store, c, _ := talk(t)
			f.write("a", "0\n")
			say(f, c, 1, "one", "a", "1\n")
			f.write("mine", "mine\n")
			f.rewind(req)
			say(f, c, 2, "two", "a", "2\n")
			third := say(f, c, 3, "three", "b", "3\n")
			for _, want := range []string{"mine\n", ""} {
				var done *Applied
				var err error
				if want != "" {
					done, err = f.w.Undo(t.Context(), nil)
				} else {
					done, err = f.w.Redo(t.Context(), nil)
				}
				must(t, err)
				if got, _ := os.ReadFile(f.path("mine")); string(got) != want || f.read("a") != "2\n" || f.read("b") != "3\n" {
					t.Errorf("%s: mine %q, want %q; a %q, b %q", done.Operation.Kind, got, want, f.read("a"), f.read("b"))
				}
				head, err := store.Head(t.Context(), "talk")
				if err != nil || head != third.Root || done.Plan.Moves() || done.Plan.Stays() != "" {
					t.Errorf("%s: head %s, want %s; %q, %v", done.Operation.Kind, head.Short(), third.Root.Short(), done.Plan.Stays(), err)
				}
				turn, err := f.w.findTurn(t.Context(), "talk", 2)
				if err != nil || turn.left[turn.last] {
					t.Errorf("%s: turn 2 was left behind, %v", done.Operation.Kind, err)
				}
			}
		})
	}
}

// An agent that does not follow a rewind goes on from where its conversation was. It has all
// turns already, and an undo leaves it there. What it did is no branch.
func TestUndoOfARewindThatTheAgentDidNotFollow(t *testing.T) {
	f, store, c, _ := talk(t)
	f.write("a", "0\n")
	say(f, c, 1, "one", "a", "1\n")
	say(f, c, 2, "two", "a", "2\n")
	tip := c.Head().Seq
	f.rewind(RewindRequest{To: "turn:1"})
	c, err := store.Open(t.Context(), "talk")
	must(t, err)
	_, err = c.Rewind(t.Context(), tip, nil)
	must(t, err)
	third := say(f, c, 3, "three", "b", "3\n")
	for _, step := range []struct {
		a  string
		do func(context.Context, *UndoOptions) (*Applied, error)
	}{{"2\n", f.w.Undo}, {"1\n", f.w.Redo}, {"2\n", f.w.Undo}} {
		done, err := step.do(t.Context(), nil)
		must(t, err)
		head, err := store.Head(t.Context(), "talk")
		if err != nil || head != third.Root || f.read("a") != step.a || f.read("b") != "3\n" {
			t.Errorf("%s: head %s, want %s; a %q, b %q, %v", done.Operation.Kind, head.Short(), third.Root.Short(), f.read("a"), f.read("b"), err)
		}
		stays := "stays as it is, because it went on from the state to return to"
		if got := done.Plan.Stays(); done.Operation.ID() == "op2" && got != stays {
			t.Errorf("undo: %q, want %q", got, stays)
		}
	}
	for n := uint64(1); n <= 3; n++ {
		if turn, err := f.w.findTurn(t.Context(), "talk", n); err != nil || turn.left[turn.last] {
			t.Errorf("turn %d was left behind, %v", n, err)
		}
	}
}

// A conversation that was removed, or that began anew under its name, does not hinder the
// files from going back.
func TestUndoWithoutTheConversation(t *testing.T) {
	for name, test := range map[string]struct {
		then  func(t *testing.T, store *conversation.Store)
		stays string
	}{
		"removed": {func(*testing.T, *conversation.Store) {}, staysRemoved},
		"begun anew": {func(t *testing.T, store *conversation.Store) {
			c, err := store.Create(t.Context(), conversation.Info{ID: "talk"})
			must(t, err)
			turn, err := conversation.NewTurn(&agentv1.UserMessage{Text: "anew", MessageId: "anew"})
			must(t, err)
			must(t, c.AppendTurn(t.Context(), turn))
			_, err = c.Save(t.Context(), nil)
			must(t, err)
		}, "stays as it is, because it never had the state to return to"},
	} {
		t.Run(name, func(t *testing.T) {
			f, store, c, _ := talk(t)
			f.write("a", "0\n")
			first := say(f, c, 1, "one", "a", "1\n")
			say(f, c, 2, "two", "a", "2\n")
			second := say(f, c, 3, "three", "a", "3\n")
			f.rewind(RewindRequest{To: "turn:2"})
			f.rewind(RewindRequest{To: first.ID})
			must(t, store.Delete(t.Context(), "talk", nil))
			test.then(t, store)
			head, _ := store.Head(t.Context(), "talk")
			for _, want := range []string{"2\n", "3\n"} {
				done, err := f.w.Undo(t.Context(), nil)
				must(t, err)
				if got := done.Plan.Effect(nil); got != test.stays || done.Plan.Stays() != got || f.read("a") != want {
					t.Errorf("undo: %q, a %q, want %q, %q", got, f.read("a"), test.stays, want)
				}
			}
			_, err := f.w.Redo(t.Context(), nil)
			must(t, err)
			if now, _ := store.Head(t.Context(), "talk"); now != head || f.read("a") != "2\n" {
				t.Errorf("redo: head %s, want %s; a %q", now.Short(), head.Short(), f.read("a"))
			}
			if name != "removed" {
				return
			}
			done := f.rewind(RewindRequest{To: second.ID})
			if got := done.Plan.Effect(nil); got != staysRemoved || f.read("a") != "3\n" {
				t.Errorf("rewind: %q, a %q", got, f.read("a"))
			}
			if _, err := f.w.Plan(t.Context(), RewindRequest{To: first.ID, Scope: Both}); !errors.Is(err, ErrNoConversations) {
				t.Errorf("rewind of both: %v, want ErrNoConversations", err)
			}
		})
	}
}
