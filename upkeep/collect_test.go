package upkeep_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/conversation/graph"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/upkeep"
)

var noGrace = &upkeep.CollectOptions{Grace: -1}

func TestCollectKeepsHistoryAndRemovesTheRest(t *testing.T) {
	ctx := context.Background()
	f := newFixture(t)
	keep := got(f.Create(ctx, conversation.Info{ID: "keep"}))
	drop := got(f.Create(ctx, conversation.Info{ID: "drop"}))
	f.grow(t, keep, "1", "2", "3")
	got(keep.Rewind(ctx, 1, nil))
	f.grow(t, drop, "a", "b")
	// An archive's messages are referred to by nothing else.
	message, summary := blob.New([]byte(`{"role":"user"}`)), blob.New([]byte(`{"role":"system"}`))
	must(t, f.blobs.Put(ctx, message, summary))
	must(t, keep.AppendArchive(ctx, &agentv1.ConversationSummaryArchive{SummarizedMessages: [][]byte{message.ID.Bytes()}, SummaryMessage: summary.ID.Bytes()}))
	got(keep.Save(ctx, nil))
	mine := blob.New([]byte("a tree node of another package"))
	must(t, f.blobs.Put(ctx, mine, blob.New([]byte("garbage"))))
	extra := []conversation.Roots{func(context.Context) iter.Seq2[graph.Root, error] {
		return graph.Roots(graph.Root{Kind: graph.Bytes, ID: mine.ID})
	}}
	service := upkeep.New(upkeep.Stores{Blobs: f.blobs, Rows: f.rows, Inventory: f.mem, Roots: extra})
	must(t, f.Delete(ctx, "drop", nil))

	before := f.count(t)
	dry := got(service.Collect(ctx, &upkeep.CollectOptions{Grace: -1, DryRun: true}))
	if f.count(t) != before {
		t.Error("a dry run removed something")
	}
	done := got(service.Collect(ctx, noGrace))
	if dry.Removed != done.Removed || int(done.Removed) != before-f.count(t) || done.Live != f.count(t) || done.Missing != 0 {
		t.Errorf("dry %+v, done %+v, left %d", dry, done, f.count(t))
	}
	// drop's two turns, their two messages and two roots, and the garbage.
	if done.Removed != 7 {
		t.Errorf("removed %d blobs, want 7", done.Removed)
	}
	if have := got(f.blobs.Has(ctx, message.ID, summary.ID, mine.ID)); slices.Contains(have, false) {
		t.Errorf("archive's messages and the extra root: %v", have)
	}
	report := got(service.Check(ctx, &upkeep.CheckOptions{ReadData: true}))
	if !report.OK() || report.Orphans != 0 {
		t.Errorf("after the collection: %+v", report)
	}
	for s, err := range f.History(ctx, "keep", nil) {
		must(t, err)
		got(f.HydrateRoot(ctx, s.Root, nil))
	}
}

func TestCollectRemovesNothingBesideDamage(t *testing.T) {
	ctx := context.Background()
	f := newFixture(t)
	c := got(f.Create(ctx, conversation.Info{ID: "c"}))
	f.grow(t, c, "1", "2")
	broken := &damagedStore{Store: f.blobs, bad: map[blob.ID]bool{c.Head().Root: true}}
	s := upkeep.New(upkeep.Stores{Blobs: broken, Rows: f.rows, Inventory: f.mem})
	must(t, f.blobs.Put(ctx, blob.New([]byte("garbage"))))
	before := f.count(t)
	res := got(s.Collect(ctx, noGrace))
	if len(res.Unreadable) != 1 || !errors.Is(res.Unreadable[0], blob.ErrCorrupt) || res.Removed != 0 || res.Withheld == 0 {
		t.Errorf("collect: %+v, want the damage and nothing removed", res)
	}
	if f.count(t) != before {
		t.Error("something was removed")
	}
	res = got(s.Collect(ctx, &upkeep.CollectOptions{Grace: -1, SkipDamaged: true}))
	if res.Damaged != 1 {
		t.Errorf("skipping damage: %+v", res)
	}
}

// damagedStore says that some blobs are corrupt.
type damagedStore struct {
	blob.Store
	bad map[blob.ID]bool
}

func (d *damagedStore) Get(ctx context.Context, id blob.ID) ([]byte, error) {
	if d.bad[id] {
		return nil, blob.Corrupt(id, "for a test")
	}
	return d.Store.Get(ctx, id)
}

func TestCollectWhileWritersSave(t *testing.T) {
	ctx := context.Background()
	f := newFixture(t)
	f.Store = conversation.New(f.blobs, f.rows, nil)
	done := make(chan error, 3)
	for w := range 3 {
		go func() {
			done <- func() error {
				c, err := f.Create(ctx, conversation.Info{ID: fmt.Sprint("w", w)})
				if err != nil {
					return err
				}
				for n := range 60 {
					turn, err := conversation.NewTurn(userMessage(fmt.Sprint(w, n)), step("same words everywhere"))
					if err != nil {
						return err
					}
					if err := c.AppendTurn(ctx, turn); err != nil {
						return err
					}
					if _, err := c.Save(ctx, nil); err != nil {
						return err
					}
					if n%20 == 19 {
						if _, err := c.Rewind(ctx, uint64(n-5), nil); err != nil {
							return err
						}
					}
				}
				return nil
			}()
		}()
	}
	for running := 3; running > 0; {
		select {
		case err := <-done:
			must(t, err)
			running--
		default:
			got(f.upkeep().Collect(ctx, noGrace))
		}
	}
	got(f.upkeep().Collect(ctx, noGrace))
	report := got(f.upkeep().Check(ctx, &upkeep.CheckOptions{ReadData: true}))
	if !report.OK() || report.Orphans != 0 {
		t.Errorf("after all: %+v", report)
	}
}

func TestCheckNamesDamageAndWhatItAffects(t *testing.T) {
	ctx := context.Background()
	f := newFixture(t)
	a := got(f.Create(ctx, conversation.Info{ID: "a"}))
	b := got(f.Create(ctx, conversation.Info{ID: "b"}))
	f.grow(t, a, "shared", "only a")
	f.grow(t, b, "shared")
	got(f.Fork(ctx, "b", 0, conversation.Info{ID: "d"}))
	must(t, f.blobs.Put(ctx, blob.New([]byte("orphan"))))

	ofA := newTurn(t, "only a").UserMessage.ID()
	ofB := newTurn(t, "shared").UserMessage.ID()
	broken := &damagedStore{Store: f.blobs, bad: map[blob.ID]bool{ofB: true}}
	s := upkeep.New(upkeep.Stores{Blobs: broken, Rows: f.rows, Inventory: f.mem})
	gen := got(f.mem.Begin(ctx))
	got(f.mem.Sweep(ctx, gen, blob.SweepOptions{Live: func(id blob.ID) bool { return id != ofA }}))
	rec := got(f.rows.Get(ctx, keyspace.Conversation("d")))
	must(t, f.rows.Commit(ctx, &kv.Batch{Set: []kv.Set{
		{Key: keyspace.Head("b"), Value: []byte(a.Head().Root.String())},
		{Key: keyspace.MessageHead("a", "m"), Value: []byte("no hex")},
		{Key: keyspace.Conversation("d"), Value: append([]byte{8, 9}, rec.Value[2:]...)},
	}}))

	report := got(s.Check(ctx, nil))
	got := map[string][]string{}
	for _, d := range report.Damage {
		got[d.Kind] = append(got[d.Kind], fmt.Sprint(d.Key, d.ID.Short(), d.Conversations))
	}
	none := blob.ID{}.Short()
	want := map[string][]string{
		upkeep.DamageMissing: {fmt.Sprint("", ofA.Short(), []string{"a", "b"})}, // b's head now leads there
		upkeep.DamageCorrupt: {fmt.Sprint("", ofB.Short(), []string{"a", "b", "d"})},
		upkeep.DamagePointer: {fmt.Sprint(keyspace.Head("b"), none, []string{"b"})},
		upkeep.DamageRow: {
			fmt.Sprint(keyspace.MessageHead("a", "m"), none, []string{"a"}),
			fmt.Sprint(keyspace.Conversation("d"), none, []string{"d"}),
		},
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("damage\n%v, want\n%v", got, want)
	}
	if report.Orphans != 1 {
		t.Errorf("%d orphans, want 1", report.Orphans)
	}
}
