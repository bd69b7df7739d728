package conversation_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/fault"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// grow saves n turns, one at a time.
func (f *fixture) grow(t testing.TB, c *conversation.Conversation, texts ...string) (saves []conversation.Save) {
	t.Helper()
	for _, text := range texts {
		check(t, c.AppendTurn(context.Background(), newTurn(t, text)))
		s, err := c.Save(context.Background(), &conversation.SaveOptions{MessageID: "m-" + text})
		check(t, err)
		saves = append(saves, s)
	}
	return saves
}

func TestRewindKeepsTheOldBranch(t *testing.T) {
	ctx := context.Background()
	f := newFixture(t)
	c := must(f.Create(ctx, conversation.Info{ID: "c"}))
	saves := f.grow(t, c, "1", "2", "3")
	check(t, c.AppendTurn(ctx, newTurn(t, "never saved")))
	back, err := c.Rewind(ctx, 2, &conversation.RewindOptions{Author: "me"})
	check(t, err)
	if back.Seq != 4 || back.Parent != 2 || back.RewoundFrom != 3 || back.Root != saves[1].Root || back.Kind != conversation.KindRewind {
		t.Errorf("rewind made %+v", back)
	}
	f.expectTexts(t, "c", "1", "2")
	f.grow(t, c, "other")
	f.expectTexts(t, "c", "1", "2", "other")

	branches := must(f.Branches(ctx, "c"))
	if len(branches) != 2 || branches[0].Tip.Seq != 3 || branches[0].Current || branches[1].Tip.Seq != 5 ||
		!branches[1].Current || branches[1].Base != 2 || branches[1].Label != "after-2" || branches[0].Label != "" {
		t.Errorf("branches %+v", branches)
	}
	// Going forward again is a rewind, too.
	must(c.Rewind(ctx, 3, nil))
	f.expectTexts(t, "c", "1", "2", "3")
	var seqs []uint64
	for s, err := range f.History(ctx, "c", &conversation.HistoryOptions{Newest: true, Limit: 3}) {
		check(t, err)
		seqs = append(seqs, s.Seq)
	}
	if !slices.Equal(seqs, []uint64{6, 5, 4}) {
		t.Errorf("newest saves %v", seqs)
	}
	seqs = nil
	for s, err := range f.History(ctx, "c", &conversation.HistoryOptions{From: 2, To: 4}) {
		check(t, err)
		seqs = append(seqs, s.Seq)
	}
	if !slices.Equal(seqs, []uint64{2, 3, 4}) {
		t.Errorf("saves 2 to 4: %v", seqs)
	}
	if _, err := c.Rewind(ctx, 99, nil); !errors.Is(err, conversation.ErrNotFound) {
		t.Errorf("rewind to nothing: %v", err)
	}
}

// A conversation starts over with an empty state, and everything stays as a branch.
func TestStartOver(t *testing.T) {
	ctx := context.Background()
	f := newFixture(t)
	c := must(f.Create(ctx, conversation.Info{ID: "c"}))
	f.grow(t, c, "1", "2")
	back := must(c.StartOver(ctx, nil))
	if back.Seq != 3 || back.Parent != 0 || back.RewoundFrom != 2 || back.Root != conversation.EmptyRoot() || back.Turns != 0 || back.Kind != conversation.KindRewind {
		t.Errorf("it made %+v", back)
	}
	f.expectTexts(t, "c")
	c = must(f.Open(ctx, "c"))
	f.grow(t, c, "other")
	f.expectTexts(t, "c", "other")
	if branches := must(f.Branches(ctx, "c")); len(branches) != 2 || branches[0].Tip.Seq != 2 || !branches[1].Current || branches[1].Base != 0 {
		t.Errorf("branches %+v", branches)
	}
	must(c.Rewind(ctx, 2, nil))
	f.expectTexts(t, "c", "1", "2")
}

func TestForkSharesBlobsAndGoesItsOwnWay(t *testing.T) {
	ctx := context.Background()
	f := newFixture(t)
	c := must(f.Create(ctx, conversation.Info{ID: "c", Title: "title", Labels: map[string]string{"a": "b"}}))
	f.grow(t, c, "1", "2", "3")
	fork, err := f.Fork(ctx, "c", 2, conversation.Info{ID: "d", Agent: "other"})
	check(t, err)
	f.grow(t, fork, "mine")
	check(t, f.Delete(ctx, "c", nil))
	f.expectTexts(t, "d", "1", "2", "mine")
	info := must(f.Get(ctx, "d"))
	if info.ForkedFrom != "c" || info.ForkedFromSave != 2 || info.Title != "title" || info.Agent != "other" || info.Labels["a"] != "b" {
		t.Errorf("fork is %+v", info)
	}
	refused := errors.New("refused")
	_, err = f.ForkWith(ctx, "d", 1, conversation.Info{ID: "e"}, func(fork conversation.Info, b *kv.Batch) error {
		if fork.ID != "e" || fork.Title != "title" || len(b.Set) == 0 {
			t.Errorf("extend got %+v and %+v", fork, b)
		}
		return refused
	})
	if !errors.Is(err, refused) {
		t.Errorf("a fork that must not be = %v", err)
	}
	_, err = f.ForkWith(ctx, "d", 1, conversation.Info{ID: "e"}, func(_ conversation.Info, b *kv.Batch) error {
		b.Expect = append(b.Expect, kv.Expect{Key: "other", Version: 7})
		return nil
	})
	if conflict := new(kv.ConflictError); !errors.As(err, &conflict) || conflict.Key != "other" {
		t.Errorf("a conflict over an added row = %v", err)
	}
	if _, err := f.Open(ctx, "e"); !errors.Is(err, conversation.ErrNotFound) {
		t.Errorf("forks that failed left a conversation: %v", err)
	}
	if _, err := f.Fork(ctx, "d", 9, conversation.Info{}); !errors.Is(err, conversation.ErrNotFound) {
		t.Errorf("fork of nothing: %v", err)
	}
	if _, err := f.Fork(ctx, "d", 1, conversation.Info{ID: "d"}); !errors.Is(err, conversation.ErrExists) {
		t.Errorf("fork onto itself: %v", err)
	}
}

func TestSavesOfAllConversations(t *testing.T) {
	ctx := context.Background()
	f := newFixture(t)
	for _, id := range []string{"a", "b"} {
		c, err := f.Create(ctx, conversation.Info{ID: id})
		check(t, err)
		f.grow(t, c, "one", "two", "three")
	}
	damage := &kv.Batch{Set: []kv.Set{{Key: keyspace.Save("a", 2), Value: []byte("\xff")}}}
	check(t, f.rows.Commit(ctx, damage))
	var got []string
	for s, err := range f.Saves(ctx) {
		if err != nil && !conversation.Damaged(err) {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprint(s.Conversation, " ", s.Seq, " ", err == nil))
	}
	want := "b 3 true, b 2 true, b 1 true, a 3 true, a 0 false, a 1 true"
	if strings.Join(got, ", ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

func TestPins(t *testing.T) {
	ctx := context.Background()
	f := newFixture(t)
	c := must(f.Create(ctx, conversation.Info{ID: "c"}))
	saves := f.grow(t, c, "1", "2")
	must(f.Pin(ctx, "good", "c", 1))
	if _, err := f.Pin(ctx, "good", "c", 2); !errors.Is(err, conversation.ErrExists) {
		t.Errorf("second pin of that name: %v", err)
	}
	if _, err := f.Pin(ctx, "bad", "c", 7); !errors.Is(err, conversation.ErrNotFound) {
		t.Errorf("pin of nothing: %v", err)
	}
	if pins := must(f.Pins(ctx)); len(pins) != 1 || pins[0].Root != saves[0].Root || pins[0].Seq != 1 {
		t.Errorf("pins %+v", pins)
	}
	check(t, f.Unpin(ctx, "good"))
	if err := f.Unpin(ctx, "good"); !errors.Is(err, conversation.ErrNotFound) {
		t.Errorf("second unpin: %v", err)
	}
}

// flaky is a row store whose commits can be made to fail.
type flaky struct {
	kv.Store
	before func(*kv.Batch) error // an error keeps the commit from happening
	after  func() error          // an error hides that it happened
}

func (f *flaky) Commit(ctx context.Context, b *kv.Batch) error {
	if f.before != nil {
		if err := f.before(b); err != nil {
			return err
		}
	}
	if err := f.Store.Commit(ctx, b); err != nil || f.after == nil {
		return err
	}
	return f.after()
}

func TestSaveAfterAnUncertainCommit(t *testing.T) {
	ctx := context.Background()
	for _, happened := range []bool{true, false} {
		t.Run(fmt.Sprint("happened ", happened), func(t *testing.T) {
			f := newFixture(t)
			rows := &flaky{Store: f.rows}
			f.Store = conversation.New(f.blobs, rows, nil)
			c := must(f.Create(ctx, conversation.Info{ID: "c"}))
			f.grow(t, c, "1")
			broken := errors.New("connection lost")
			if happened {
				rows.after = func() error { return broken }
			} else {
				rows.before = func(*kv.Batch) error { return broken }
			}
			check(t, c.AppendTurn(ctx, newTurn(t, "2")))
			if _, err := c.Save(ctx, nil); !errors.Is(err, broken) {
				t.Fatalf("save: %v", err)
			}
			rows.before, rows.after = nil, nil
			check(t, c.AppendStep(ctx, say("two")))
			saves := f.grow(t, c, "3")
			f.expectTexts(t, "c", "1", "2", "two", "3")
			if want := map[bool]uint64{true: 3, false: 2}[happened]; saves[0].Seq != want {
				t.Errorf("next save is %d, want %d", saves[0].Seq, want)
			}
		})
	}
}

func TestSavePutsAgainWhatACollectorTook(t *testing.T) {
	ctx := context.Background()
	f := newFixture(t)
	rows := &flaky{Store: f.rows}
	f.Store = conversation.New(f.blobs, rows, nil)
	c := must(f.Create(ctx, conversation.Info{ID: "c"}))
	f.grow(t, c, "1", "2")
	keep := map[blob.ID]bool{}
	check(t, f.mem.List(ctx, blob.ID{}, func(i blob.Info) error { keep[i.ID] = true; return nil }))
	swept := false
	rows.before = func(b *kv.Batch) error {
		if swept || len(b.Refs) == 0 {
			return nil
		}
		swept = true
		gen, err := f.mem.Begin(ctx)
		if err != nil {
			return err
		}
		_, err = f.mem.Sweep(ctx, gen, blob.SweepOptions{Live: func(id blob.ID) bool { return keep[id] }})
		return err
	}
	f.grow(t, c, "3")
	if !swept {
		t.Fatal("nothing was swept")
	}
	f.expectTexts(t, "c", "1", "2", "3")
}

func TestSaveRefusesAStateWithHolesUnlessLenient(t *testing.T) {
	ctx := context.Background()
	f := newFixture(t)
	c := must(f.Create(ctx, conversation.Info{ID: "c"}))
	u := user("look")
	u.TextBlobId = blob.Sum([]byte("not stored")).Bytes()
	turn := must(conversation.NewTurn(u))
	check(t, c.AppendTurn(ctx, turn))
	var missing *kv.MissingBlobsError
	if _, err := c.Save(ctx, nil); !errors.As(err, &missing) || len(missing.IDs) != 1 {
		t.Fatalf("save: %v, want a missing blob", err)
	}
	must(c.Save(ctx, &conversation.SaveOptions{Lenient: true}))
	f.expectTexts(t, "c", "look")
}

func TestExtendAppearsWithTheSaveOrNotAtAll(t *testing.T) {
	ctx := context.Background()
	f := newFixture(t)
	c := must(f.Create(ctx, conversation.Info{ID: "c"}))
	f.grow(t, c, "1")
	row := keyspace.Setting("mine")
	check(t, c.AppendTurn(ctx, newTurn(t, "2")))
	_, err := c.Save(ctx, &conversation.SaveOptions{Extend: func(s conversation.Save, b *kv.Batch) error {
		b.Expect = append(b.Expect, kv.Expect{Key: row, Version: 12345})
		return nil
	}})
	if !errors.Is(err, kv.ErrConflict) {
		t.Fatalf("save: %v, want ErrConflict", err)
	}
	f.expectTexts(t, "c", "1")
	must(c.Save(ctx, &conversation.SaveOptions{Extend: func(s conversation.Save, b *kv.Batch) error {
		b.Set = append(b.Set, kv.Set{Key: row, Value: fmt.Append(nil, s.Seq)})
		return nil
	}}))
	if got := must(f.rows.Get(ctx, row)); string(got.Value) != "2" {
		t.Errorf("row holds %q", got.Value)
	}
}

// TestLostRootIsDataLoss loses or damages the state of a save whose row is there: that is
// damage, in every call, and not the absence of the conversation.
func TestLostRootIsDataLoss(t *testing.T) {
	t.Run("missing", func(t *testing.T) { testLostRoot(t, nil) })
	t.Run("damaged", func(t *testing.T) { testLostRoot(t, []byte("other bytes")) })
}

func testLostRoot(t *testing.T, instead []byte) {
	ctx := context.Background()
	f := newFixture(t)
	c := must(f.Create(ctx, conversation.Info{ID: "c"}))
	f.grow(t, c, "1", "2")
	head := must(f.Head(ctx, "c"))
	gen := must(f.mem.Begin(ctx))
	must(f.mem.Sweep(ctx, gen, blob.SweepOptions{Live: func(id blob.ID) bool { return id != head }}))
	if instead != nil {
		check(t, f.mem.Put(ctx, blob.Blob{ID: head, Data: instead}))
	}
	calls := map[string]func() error{
		"hydrate": func() error { _, err := f.Hydrate(ctx, "c", nil); return err },
		"fork":    func() error { _, err := f.Fork(ctx, "c", 0, conversation.Info{ID: "d"}); return err },
		"pin":     func() error { _, err := f.Pin(ctx, "p", "c", 2); return err },
	}
	for name, call := range calls {
		err := call()
		var lost *conversation.HydrationError
		if !errors.Is(err, conversation.ErrDataLoss) || fault.Of(err) != fault.Damaged || !errors.As(err, &lost) || lost.Source == "" {
			t.Errorf("%s = %v (%s), want data loss with its source", name, err, fault.Of(err))
		}
	}
	if _, err := f.Get(ctx, "d"); !errors.Is(err, conversation.ErrNotFound) {
		t.Errorf("the fork of a lost state exists: %v", err)
	}
}

// A conversation whose root is lost takes a complete new state, by each of the calls that
// set one, and continues after it. The history keeps the save that was lost.
func TestLostRootTakesACompleteState(t *testing.T) {
	ctx := context.Background()
	for name, set := range map[string]func(f *fixture, c *conversation.Conversation, s *conversation.State) error{
		"state": func(_ *fixture, c *conversation.Conversation, s *conversation.State) error { return c.SetState(ctx, s) },
		"structure": func(f *fixture, c *conversation.Conversation, s *conversation.State) error {
			check(t, f.blobs.Put(ctx, s.Blobs()...))
			raw := must(proto.Marshal(must(s.Structure())))
			return c.SetStructure(ctx, raw)
		},
		"root": func(f *fixture, c *conversation.Conversation, s *conversation.State) error {
			root := blob.New(must(proto.Marshal(must(s.Structure()))))
			check(t, f.blobs.Put(ctx, append(s.Blobs(), root)...))
			return c.SetRoot(ctx, root.ID)
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			c := must(f.Create(ctx, conversation.Info{ID: "c"}))
			f.grow(t, c, "1", "2")
			head := must(f.Head(ctx, "c"))
			gen := must(f.mem.Begin(ctx))
			must(f.mem.Sweep(ctx, gen, blob.SweepOptions{Live: func(id blob.ID) bool { return id != head }}))
			c = must(f.Open(ctx, "c"))
			turn := must(conversation.NewTurn(&agentv1.UserMessage{Text: "again", MessageId: "m"}))
			if err := c.AppendTurn(ctx, turn); !errors.Is(err, conversation.ErrDataLoss) {
				t.Fatalf("a turn after a lost state: %v", err)
			}
			check(t, set(f, c, &conversation.State{Turns: []conversation.Turn{turn}}))
			must(c.Save(ctx, nil))
			check(t, c.AppendTurn(ctx, must(conversation.NewTurn(&agentv1.UserMessage{Text: "more"}))))
			must(c.Save(ctx, nil))
			if got := must(f.Hydrate(ctx, "c", nil)); len(got.Turns) != 2 {
				t.Errorf("%d turns", len(got.Turns))
			}
			if saves := must(f.SaveAt(ctx, "c", 2)); saves.Root != head {
				t.Errorf("the lost save names %s", saves.Root)
			}
		})
	}
}

func TestForkHasTheHeadOfItsMessage(t *testing.T) {
	ctx := context.Background()
	f := newFixture(t)
	c := must(f.Create(ctx, conversation.Info{ID: "c"}))
	turn := must(conversation.NewTurn(&agentv1.UserMessage{Text: "one", MessageId: "m-one"}))
	check(t, c.AppendTurn(ctx, turn))
	saved := must(c.Save(ctx, &conversation.SaveOptions{MessageID: "m-one"}))
	must(f.Fork(ctx, "c", 0, conversation.Info{ID: "d"}))
	if head := must(f.MessageHead(ctx, "d", "m-one")); head != saved.Root {
		t.Errorf("message head %s, want %s", head, saved.Root)
	}
}
