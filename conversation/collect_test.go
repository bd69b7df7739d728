package conversation_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/conversation/graph"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

func (f *fixture) count(t testing.TB) (n int) {
	t.Helper()
	check(t, f.mem.List(context.Background(), blob.ID{}, func(blob.Info) error { n++; return nil }))
	return n
}

var noGrace = &conversation.CollectOptions{Grace: -1}

func TestCollectKeepsHistoryAndRemovesTheRest(t *testing.T) {
	ctx := context.Background()
	f := newFixture(t)
	keep := must(f.Create(ctx, conversation.Info{ID: "keep"}))
	drop := must(f.Create(ctx, conversation.Info{ID: "drop"}))
	f.grow(t, keep, "1", "2", "3")
	must(keep.Rewind(ctx, 1, nil))
	f.grow(t, drop, "a", "b")
	// An archive's messages are referred to by nothing else.
	message, summary := blob.New([]byte(`{"role":"user"}`)), blob.New([]byte(`{"role":"system"}`))
	check(t, f.blobs.Put(ctx, message, summary))
	check(t, keep.AppendArchive(ctx, &agentv1.ConversationSummaryArchive{SummarizedMessages: [][]byte{message.ID.Bytes()}, SummaryMessage: summary.ID.Bytes()}))
	must(keep.Save(ctx, nil))
	mine := blob.New([]byte("a tree node of another package"))
	check(t, f.blobs.Put(ctx, mine, blob.New([]byte("garbage"))))
	extra := []conversation.Roots{func(context.Context) iter.Seq2[graph.Root, error] {
		return graph.Roots(graph.Root{Kind: graph.Bytes, ID: mine.ID})
	}}
	check(t, f.Delete(ctx, "drop", nil))

	before := f.count(t)
	dry := must(f.Collect(ctx, f.mem, extra, &conversation.CollectOptions{Grace: -1, DryRun: true}))
	if f.count(t) != before {
		t.Error("a dry run removed something")
	}
	done := must(f.Collect(ctx, f.mem, extra, noGrace))
	if dry.Removed != done.Removed || int(done.Removed) != before-f.count(t) || done.Live != f.count(t) || done.Missing != 0 {
		t.Errorf("dry %+v, done %+v, left %d", dry, done, f.count(t))
	}
	// drop's two turns, their two messages and two roots, and the garbage.
	if done.Removed != 7 {
		t.Errorf("removed %d blobs, want 7", done.Removed)
	}
	if have := must(f.blobs.Has(ctx, message.ID, summary.ID, mine.ID)); slices.Contains(have, false) {
		t.Errorf("archive's messages and the extra root: %v", have)
	}
	report := must(f.Check(ctx, &conversation.CheckOptions{ReadData: true, Extra: extra, Lister: f.mem}))
	if !report.OK() || report.Orphans != 0 {
		t.Errorf("after the collection: %+v", report)
	}
	for s, err := range f.History(ctx, "keep", nil) {
		check(t, err)
		must(f.HydrateRoot(ctx, s.Root, nil))
	}
}

func TestCollectRemovesNothingBesideDamage(t *testing.T) {
	ctx := context.Background()
	f := newFixture(t)
	c := must(f.Create(ctx, conversation.Info{ID: "c"}))
	f.grow(t, c, "1", "2")
	broken := &damagedStore{Store: f.blobs, bad: map[blob.ID]bool{c.Head().Root: true}}
	s := conversation.New(broken, f.rows, nil)
	check(t, f.blobs.Put(ctx, blob.New([]byte("garbage"))))
	before := f.count(t)
	res := must(s.Collect(ctx, f.mem, nil, noGrace))
	if len(res.Unreadable) != 1 || !errors.Is(res.Unreadable[0], blob.ErrCorrupt) || res.Removed != 0 || res.Withheld == 0 {
		t.Errorf("collect: %+v, want the damage and nothing removed", res)
	}
	if f.count(t) != before {
		t.Error("something was removed")
	}
	res = must(s.Collect(ctx, f.mem, nil, &conversation.CollectOptions{Grace: -1, SkipDamaged: true}))
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
					turn, err := conversation.NewTurn(user(fmt.Sprint(w, n)), say("same words everywhere"))
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
			check(t, err)
			running--
		default:
			must(f.Collect(ctx, f.mem, nil, noGrace))
		}
	}
	must(f.Collect(ctx, f.mem, nil, noGrace))
	report := must(f.Check(ctx, &conversation.CheckOptions{ReadData: true, Lister: f.mem}))
	if !report.OK() || report.Orphans != 0 {
		t.Errorf("after all: %+v", report)
	}
}

func TestCheckNamesDamageAndWhomItAffects(t *testing.T) {
	ctx := context.Background()
	f := newFixture(t)
	a := must(f.Create(ctx, conversation.Info{ID: "a"}))
	b := must(f.Create(ctx, conversation.Info{ID: "b"}))
	f.grow(t, a, "shared", "only a")
	f.grow(t, b, "shared")
	must(f.Fork(ctx, "b", 0, conversation.Info{ID: "d"}))
	check(t, f.blobs.Put(ctx, blob.New([]byte("orphan"))))

	ofA := newTurn(t, "only a").UserMessage.ID()
	ofB := newTurn(t, "shared").UserMessage.ID()
	s := conversation.New(&damagedStore{Store: f.blobs, bad: map[blob.ID]bool{ofB: true}}, f.rows, nil)
	gen := must(f.mem.Begin(ctx))
	must(f.mem.Sweep(ctx, gen, blob.SweepOptions{Live: func(id blob.ID) bool { return id != ofA }}))
	rec := must(f.rows.Get(ctx, keyspace.Conversation("d")))
	check(t, f.rows.Commit(ctx, &kv.Batch{Set: []kv.Set{
		{Key: keyspace.Head("b"), Value: []byte(a.Head().Root.String())},
		{Key: keyspace.MessageHead("a", "m"), Value: []byte("no hex")},
		{Key: keyspace.Conversation("d"), Value: append([]byte{8, 9}, rec.Value[2:]...)},
	}}))

	report := must(s.Check(ctx, &conversation.CheckOptions{Lister: f.mem}))
	got := map[string][]string{}
	for _, d := range report.Damage {
		got[d.Kind] = append(got[d.Kind], fmt.Sprint(d.Key, d.ID.Short(), d.Conversations))
	}
	none := blob.ID{}.Short()
	want := map[string][]string{
		conversation.DamageMissing: {fmt.Sprint("", ofA.Short(), []string{"a", "b"})}, // b's head now leads there
		conversation.DamageCorrupt: {fmt.Sprint("", ofB.Short(), []string{"a", "b", "d"})},
		conversation.DamagePointer: {fmt.Sprint(keyspace.Head("b"), none, []string{"b"})},
		conversation.DamageRow: {
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

func TestTransferSendsOnlyWhatIsLacking(t *testing.T) {
	ctx := context.Background()
	from, to := newFixture(t), newFixture(t)
	a := must(from.Create(ctx, conversation.Info{ID: "c"}))
	saves := from.grow(t, a, "1", "2")
	send := func(root blob.ID) (sent int) {
		_, blobs, err := from.Export(ctx, root, func(ctx context.Context, ids []blob.ID) ([]bool, error) { return to.blobs.Has(ctx, ids...) })
		check(t, err)
		counted := func(yield func(blob.Blob, error) bool) {
			for b, err := range blobs {
				sent++
				if !yield(b, err) {
					return
				}
			}
		}
		check(t, to.Import(ctx, root, counted))
		return sent
	}
	if n := send(saves[1].Root); n != 5 {
		t.Errorf("sent %d blobs, want 5", n)
	}
	b := must(to.Create(ctx, conversation.Info{ID: "c"}))
	check(t, b.SetRoot(ctx, saves[1].Root))
	saved := must(b.Save(ctx, &conversation.SaveOptions{Kind: conversation.KindImport}))
	if saved.Root != saves[1].Root || saved.Turns != 2 {
		t.Errorf("imported as %+v", saved)
	}
	next := from.grow(t, a, "3")
	if n := send(next[0].Root); n != 3 {
		t.Errorf("sent %d blobs for one more turn, want 3", n)
	}
	check(t, b.SetRoot(ctx, next[0].Root))
	must(b.Save(ctx, nil))
	to.expectTexts(t, "c", "1", "2", "3")
	to.grow(t, b, "4")
	to.expectTexts(t, "c", "1", "2", "3", "4")
}

func TestImportRefusesLiesAndHoles(t *testing.T) {
	ctx := context.Background()
	f := newFixture(t)
	root := blob.New(bytes.Join([][]byte{{0x42, 0x20}, make([]byte, 32)}, nil)) // one turn with id 0
	lie := func(yield func(blob.Blob, error) bool) { yield(blob.Blob{ID: root.ID, Data: []byte("other")}, nil) }
	if err := f.Import(ctx, root.ID, lie); !errors.Is(err, blob.ErrMismatch) {
		t.Errorf("lie: %v, want ErrMismatch", err)
	}
	hole := func(yield func(blob.Blob, error) bool) { yield(root, nil) }
	var missing *kv.MissingBlobsError
	if err := f.Import(ctx, root.ID, hole); !errors.As(err, &missing) {
		t.Errorf("hole: %v, want missing blobs", err)
	}
}

func TestPlanRetention(t *testing.T) {
	now := time.UnixMilli(1_000_000_000_000)
	save := func(c string, seq uint64, age time.Duration, bytes int64) conversation.Retained {
		return conversation.Retained{Conversation: c, Save: conversation.Save{Seq: seq, Time: now.Add(-age)}, Bytes: bytes}
	}
	all := []conversation.Retained{
		save("a", 1, 10*time.Hour, 100), save("a", 2, 9*time.Hour, 10), save("a", 3, 8*time.Hour, 10), save("a", 4, time.Hour, 50),
		save("b", 1, 7*time.Hour, 100), save("b", 2, 6*time.Hour, 100),
	}
	all[1].Pinned, all[3].Current, all[5].Current = true, true, true
	cases := []struct {
		name   string
		policy conversation.Policy
		want   string
	}{
		{"nothing", conversation.Policy{}, "map[] [] 0"},
		{"age", conversation.Policy{MaxAge: 7*time.Hour + time.Minute}, "map[a:[1 3]] [] 110"},
		{"count", conversation.Policy{MaxSaves: 3}, "map[a:[1]] [] 100"},
		{"count below what is kept anyway", conversation.Policy{MaxSaves: 1}, "map[a:[1 3] b:[1]] [] 210"},
		{"budget", conversation.Policy{MaxBytes: 265}, "map[a:[1 3]] [] 110"},
		{"tight budget", conversation.Policy{MaxBytes: 1}, "map[a:[1 3] b:[1]] [] 210"},
		{"tight budget, whole conversations", conversation.Policy{MaxBytes: 1, DropConversations: true}, "map[a:[1 3]] [b] 310"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			p := conversation.PlanRetention(all, c.policy, now)
			if got := fmt.Sprint(p.Saves, p.Conversations, p.Freed); got != c.want {
				t.Errorf("plan %s, want %s", got, c.want)
			}
		})
	}
}

func TestRetentionFreesWhatItPromises(t *testing.T) {
	ctx := context.Background()
	f := newFixture(t)
	c := must(f.Create(ctx, conversation.Info{ID: "c"}))
	f.grow(t, c, "1", "2", "3", "4")
	must(f.Pin(ctx, "p", "c", 2))
	saves := must(f.Retainable(ctx, f.mem))
	var total int64
	for _, r := range saves {
		total += r.Bytes
	}
	plan := conversation.PlanRetention(saves, conversation.Policy{MaxBytes: 1}, f.clock)
	if n := must(f.ApplyRetention(ctx, plan)); n != 2 {
		t.Errorf("removed %d saves, want 2", n)
	}
	res := must(f.Collect(ctx, f.mem, nil, noGrace))
	if res.RemovedBytes != plan.Freed || res.KeptBytes != total-plan.Freed {
		t.Errorf("promised %d of %d bytes, the collection %+v", plan.Freed, total, res.SweepResult)
	}
	if _, err := f.MessageHead(ctx, "c", "m-1"); !errors.Is(err, conversation.ErrNotFound) {
		t.Errorf("message 1: %v, want ErrNotFound", err)
	}
	must(f.MessageHead(ctx, "c", "m-2"))
	f.grow(t, c, "5")
	f.expectTexts(t, "c", "1", "2", "3", "4", "5")
	if report := must(f.Check(ctx, nil)); !report.OK() {
		t.Errorf("report %+v", report.Damage)
	}
	must(f.Branches(ctx, "c"))
}

// What happens between a plan and its commits counts: pins and new saves.
func TestRetentionSeesWhatComesBetween(t *testing.T) {
	ctx := context.Background()
	t.Run("a pin before the commit", func(t *testing.T) {
		f := newFixture(t)
		f.grow(t, must(f.Create(ctx, conversation.Info{ID: "c"})), "1", "2", "3")
		plan := conversation.PlanRetention(must(f.Retainable(ctx, nil)), conversation.Policy{MaxSaves: 1}, f.clock)
		once := sync.OnceFunc(func() { must(f.Pin(ctx, "p", "c", 1)) })
		rows := &flaky{Store: f.rows, before: func(*kv.Batch) error { once(); return nil }}
		if n := must(conversation.New(f.blobs, rows, nil).ApplyRetention(ctx, plan)); n != 1 {
			t.Errorf("removed %d saves, want 1", n)
		}
		must(f.SaveAt(ctx, "c", 1))
	})
	t.Run("a pin of a conversation that is deleted", func(t *testing.T) {
		f := newFixture(t)
		f.grow(t, must(f.Create(ctx, conversation.Info{ID: "c"})), "1")
		once := sync.OnceFunc(func() { must(f.Pin(ctx, "p", "c", 1)) })
		rows := &flaky{Store: f.rows, before: func(*kv.Batch) error { once(); return nil }}
		check(t, conversation.New(f.blobs, rows, nil).Delete(ctx, "c", nil))
		if pins := must(f.Pins(ctx)); len(pins) != 0 {
			t.Errorf("pins of what is gone: %+v", pins)
		}
	})
	drop := func(t *testing.T, f *fixture, between func()) {
		t.Helper()
		tight := conversation.Policy{MaxBytes: 1, DropConversations: true}
		plan := conversation.PlanRetention(must(f.Retainable(ctx, f.mem)), tight, f.clock)
		if len(plan.Conversations) != 1 {
			t.Fatalf("plan %+v", plan)
		}
		between()
		must(f.ApplyRetention(ctx, plan))
	}
	t.Run("work in a conversation that was to go", func(t *testing.T) {
		f := newFixture(t)
		c := must(f.Create(ctx, conversation.Info{ID: "c"}))
		f.grow(t, c, "1")
		drop(t, f, func() { f.grow(t, c, "2") })
		f.expectTexts(t, "c", "1", "2")
	})
	t.Run("a pin in a conversation that was to go", func(t *testing.T) {
		f := newFixture(t)
		f.grow(t, must(f.Create(ctx, conversation.Info{ID: "c"})), "1")
		drop(t, f, func() { must(f.Pin(ctx, "p", "c", 1)) })
		f.expectTexts(t, "c", "1")
	})
	t.Run("nothing", func(t *testing.T) {
		f := newFixture(t)
		f.grow(t, must(f.Create(ctx, conversation.Info{ID: "c"})), "1")
		drop(t, f, func() {})
		if _, err := f.Get(ctx, "c"); !errors.Is(err, conversation.ErrNotFound) {
			t.Errorf("it is still there: %v", err)
		}
	})
}
