package conversation_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/upkeep"
)

// A root that others stored, and a turn and a message that only it reaches.
type outsider struct {
	root blob.Blob
	deep []blob.Blob
}

func newOutsider(t testing.TB, f *fixture, text string) outsider {
	t.Helper()
	turn := newTurn(t, text)
	deep := []blob.Blob{blob.New(turn.Structure.Bytes()), blob.New(turn.UserMessage.Bytes())}
	id := turn.Structure.ID()
	root := blob.New(append([]byte{0x42, 0x20}, id[:]...))
	check(t, f.blobs.Put(context.Background(), append(deep, root)...))
	return outsider{root: root, deep: deep}
}

func (f *fixture) has(t testing.TB, blobs ...blob.Blob) []bool {
	t.Helper()
	var ids []blob.ID
	for _, b := range blobs {
		ids = append(ids, b.ID)
	}
	return must(f.blobs.Has(context.Background(), ids...))
}

// forgetAllButTheHead is what another process does with a strict policy.
func (f *fixture) forgetAllButTheHead(t testing.TB) {
	t.Helper()
	ctx := context.Background()
	s := conversation.New(f.blobs, f.rows, nil)
	plan := conversation.PlanRetention(must(s.Retainable(ctx, nil)), conversation.Policy{MaxSaves: 1}, f.clock)
	if must(s.ApplyRetention(ctx, plan)) == 0 {
		t.Fatal("the policy removed nothing")
	}
}

// busySweeper does something after what is live was found out and before the
// rest goes.
type busySweeper struct {
	upkeep.Inventory
	between func()
}

func (b *busySweeper) Sweep(ctx context.Context, generation uint64, opts blob.SweepOptions) (blob.SweepResult, error) {
	if b.between != nil {
		b.between()
		b.between = nil
	}
	return b.Inventory.Sweep(ctx, generation, opts)
}

// namedAndDropped returns a handle that named an outsider in one save and no
// longer does in the current one, which alone is left.
func namedAndDropped(t testing.TB, f *fixture) (*conversation.Conversation, outsider) {
	t.Helper()
	ctx := context.Background()
	c := must(f.Create(ctx, conversation.Info{ID: "c"}))
	o := newOutsider(t, f, "of a subagent")
	check(t, c.SetSubagent(ctx, "s", o.root.ID))
	must(c.Save(ctx, nil))
	check(t, c.RemoveSubagent(ctx, "s"))
	must(c.Save(ctx, nil))
	f.forgetAllButTheHead(t)
	return c, o
}

func TestSaveNoticesWhatACollectionTookSince(t *testing.T) {
	ctx := context.Background()
	f := newFixture(t)
	c, o := namedAndDropped(t, f)
	must(f.Collect(ctx, f.mem, noGrace))
	if have := f.has(t, o.deep...); slices.Contains(have, true) {
		t.Fatalf("the collection kept %v", have)
	}
	check(t, f.blobs.Put(ctx, o.root)) // without what it reaches
	check(t, c.SetSubagent(ctx, "s", o.root.ID))
	var missing *kv.MissingBlobsError
	if _, err := c.Save(ctx, nil); !errors.As(err, &missing) || !slices.Contains(missing.IDs, o.deep[0].ID) {
		t.Errorf("save: %v, want the missing turn %s", err, o.deep[0].ID.Short())
	}
	check(t, f.blobs.Put(ctx, o.deep...))
	must(c.Save(ctx, nil))
	if report := must(f.Check(ctx, nil)); !report.OK() {
		t.Errorf("damage %+v", report.Damage)
	}
}

func TestSaveKeepsWhatARunningCollectionWouldTake(t *testing.T) {
	for _, grown := range []bool{false, true} {
		ctx := context.Background()
		f := newFixture(t)
		c, o := namedAndDropped(t, f)
		next := o.root
		if grown { // a newer root of the subagent, of which most is known
			more := newOutsider(t, f, "later")
			next = blob.New(append(slices.Clone(o.root.Data), more.root.Data...))
			check(t, f.blobs.Put(ctx, next))
		}
		collecting := &busySweeper{Inventory: f.mem, between: func() {
			check(t, c.SetSubagent(ctx, "s", next.ID))
			must(c.Save(ctx, nil))
		}}
		must(f.Collect(ctx, collecting, noGrace))
		if report := must(f.Check(ctx, nil)); !report.OK() {
			t.Errorf("grown %v: damage %+v", grown, report.Damage)
		}
	}
}

// A message names the state at which it was written. That state may no longer be
// part of the history.
func TestSaveKeepsAnEarlierStateThatAMessageNames(t *testing.T) {
	for _, opened := range []string{"the handle that saved it", "a later one"} {
		t.Run(opened, func(t *testing.T) {
			ctx := context.Background()
			f := newFixture(t)
			c := must(f.Create(ctx, conversation.Info{ID: "c"}))
			check(t, c.SetTodos(ctx, &agentv1.TodoItem{Id: "1", Content: "only in the first state"}))
			first := must(c.Save(ctx, nil))
			if opened == "a later one" {
				c = must(f.Open(ctx, "c"))
			}
			check(t, c.SetTodos(ctx))
			check(t, c.AppendTurn(ctx, newTurn(t, "1")))
			must(c.Save(ctx, nil))
			f.forgetAllButTheHead(t)
			collecting := &busySweeper{Inventory: f.mem, between: func() {
				message := user("2")
				message.ConversationStateBlobId = first.Root.Bytes()
				turn := must(conversation.NewTurn(message))
				check(t, c.AppendTurn(ctx, turn))
				must(c.Save(ctx, nil))
			}}
			must(f.Collect(ctx, collecting, noGrace))
			if report := must(f.Check(ctx, nil)); !report.OK() {
				t.Errorf("damage %+v", report.Damage)
			}
		})
	}
}

// Between the look at what a save leans on and its commit, the history goes and a
// collection takes what only it had: the save must look again.
func TestSaveLooksAgainWhenHistoryGoesUnderIt(t *testing.T) {
	ctx := context.Background()
	f := newFixture(t)
	hook := &commitHook{Store: f.rows}
	c := must(conversation.New(f.blobs, hook, nil).Create(ctx, conversation.Info{ID: "c"}))
	todo := &agentv1.TodoItem{Id: "1", Content: "only in the first state"}
	check(t, c.SetTodos(ctx, todo))
	first := must(c.Save(ctx, nil))
	check(t, c.SetTodos(ctx))
	check(t, c.AppendTurn(ctx, newTurn(t, "1")))
	must(c.Save(ctx, nil))

	message := user("2")
	message.ConversationStateBlobId = first.Root.Bytes()
	check(t, c.AppendTurn(ctx, must(conversation.NewTurn(message))))
	root := must(f.blobs.Get(ctx, first.Root))
	hook.before = func() {
		f.forgetAllButTheHead(t)
		must(f.Collect(ctx, f.mem, noGrace))
		check(t, f.blobs.Put(ctx, blob.New(root)))
	}
	var missing *kv.MissingBlobsError
	if _, err := c.Save(ctx, nil); !errors.As(err, &missing) {
		t.Errorf("save: %v, want missing blobs", err)
	}
	if report := must(f.Check(ctx, nil)); !report.OK() {
		t.Errorf("damage %+v", report.Damage)
	}
	check(t, f.blobs.Put(ctx, blob.New(must(conversation.NewItem(todo)).Bytes())))
	must(c.Save(ctx, nil))
	if report := must(f.Check(ctx, nil)); !report.OK() {
		t.Errorf("damage after the second attempt %+v", report.Damage)
	}
}

// commitHook does something right before the next commit.
type commitHook struct {
	kv.Store
	before func()
}

func (h *commitHook) Commit(ctx context.Context, b *kv.Batch) error {
	if before := h.before; before != nil {
		h.before = nil
		before()
	}
	return h.Store.Commit(ctx, b)
}

// countingStore counts the blobs that are read.
type countingStore struct {
	blob.Store
	gets int
}

func (s *countingStore) Get(ctx context.Context, id blob.ID) ([]byte, error) {
	s.gets++
	return s.Store.Get(ctx, id)
}

// What an earlier save of the handle made safe is not read again as long as no
// collection began.
func TestSaveReadsOnlyWhatIsNew(t *testing.T) {
	ctx := context.Background()
	f := newFixture(t)
	counting := &countingStore{Store: f.blobs}
	c := must(conversation.New(counting, f.rows, &conversation.Options{Parallel: 1}).Create(ctx, conversation.Info{ID: "c"}))
	sub := must(f.Create(ctx, conversation.Info{ID: "sub"}))
	save := func() int {
		before := counting.gets
		check(t, c.SetSubagent(ctx, "s", sub.Head().Root))
		message := user("next")
		message.ConversationStateBlobId = c.Head().Root.Bytes()
		check(t, c.AppendTurn(ctx, must(conversation.NewTurn(message))))
		must(c.Save(ctx, nil))
		return counting.gets - before
	}
	check(t, c.AppendTurn(ctx, newTurn(t, "first")))
	must(c.Save(ctx, nil))
	for range 50 {
		f.grow(t, sub, "a turn of the subagent")
	}
	save()
	f.grow(t, sub, "one more")
	if n := save(); n > 4 { // the subagent's root, twice, its new turn, the message in it
		t.Errorf("a save after one more turn read %d blobs", n)
	}
	must(f.Collect(ctx, f.mem, noGrace))
	f.grow(t, sub, "and one more")
	save()
	f.grow(t, sub, "and another")
	if n := save(); n > 4 {
		t.Errorf("the second save after a collection read %d blobs", n)
	}
}
