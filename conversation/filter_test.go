package conversation_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/internal/testenv"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/kv/memkv"
)

// all returns the ids of a list, page by page.
func (f *fixture) all(t testing.TB, opts conversation.ListOptions) []string {
	t.Helper()
	ids := []string{}
	for {
		page, err := f.List(t.Context(), &opts)
		check(t, err)
		for _, info := range page.Conversations {
			ids = append(ids, info.ID)
		}
		if page.Next == "" {
			return ids
		}
		opts.Cursor = page.Next
	}
}

var (
	someWorkspaces = []string{"", "/a", "/b"}
	someAgents     = []string{"", "x", "y"}
)

// agree compares filtered lists with a look at every conversation.
func (f *fixture) agree(t testing.TB) {
	t.Helper()
	for _, workspace := range someWorkspaces {
		for _, agent := range someAgents {
			var want []string
			match := func(info conversation.Info) bool {
				return (workspace == "" || info.Workspace == workspace) && (agent == "" || info.Agent == agent)
			}
			want = f.all(t, conversation.ListOptions{Limit: 1000, Match: match})
			for _, few := range []int{0, 1000} {
				restore := conversation.SetFew(few)
				got := f.all(t, conversation.ListOptions{Limit: max(2, len(want)/20), Workspace: workspace, Agent: agent})
				restore()
				if !slices.Equal(got, want) {
					t.Errorf("workspace %q, agent %q, few %d: listed %q, want %q", workspace, agent, few, got, want)
				}
			}
		}
	}
}

// sound reports rows that belong together and do not.
func (f *fixture) sound(t testing.TB) {
	t.Helper()
	report, err := f.Check(t.Context(), nil)
	check(t, err)
	for _, d := range report.Damage {
		t.Errorf("damage: %v %s", d.Key, d.Err)
	}
}

// exact compares the rows of filters with those that belong to the conversations.
func (f *fixture) exact(t testing.TB) {
	t.Helper()
	var got, want []string
	for row, err := range f.rows.Scan(t.Context(), keyspace.AllConversationsOf(), kv.ScanOptions{KeysOnly: true}) {
		check(t, err)
		got = append(got, row.Key)
	}
	for _, id := range f.all(t, conversation.ListOptions{}) {
		want = append(want, must(f.Filed(t.Context(), must(f.Get(t.Context(), id))))...)
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("rows %q, want %q", got, want)
	}
}

// TestFilteredListsEqualAFullScan changes conversations at random, in a store of this
// release or of an earlier one, and compares every filtered list with all conversations.
func TestFilteredListsEqualAFullScan(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		ctx := context.Background()
		f := newFixture(t)
		other := &fixture{rows: memkv.New(f.mem), clock: f.clock}
		other.Store = conversation.New(f.blobs, other.rows, other.options())
		made := 0
		info := func(rt *rapid.T) conversation.Info {
			made++
			return conversation.Info{
				ID:        fmt.Sprintf("%d:%d", rapid.IntRange(0, 9).Draw(rt, "id"), made),
				Workspace: rapid.SampledFrom(someWorkspaces).Draw(rt, "workspace"), Agent: rapid.SampledFrom(someAgents).Draw(rt, "agent"),
			}
		}
		one := func(rt *rapid.T) string {
			ids := f.all(t, conversation.ListOptions{})
			if len(ids) == 0 {
				rt.Skip("no conversation")
			}
			return rapid.SampledFrom(ids).Draw(rt, "which")
		}
		rt.Repeat(map[string]func(*rapid.T){
			"create": func(rt *rapid.T) { must(f.Create(ctx, info(rt))) },
			"save": func(rt *rapid.T) {
				c := must(f.Open(ctx, one(rt)))
				check(t, c.AppendTurn(ctx, newTurn(t, fmt.Sprint(made))))
				must(c.Save(ctx, nil))
			},
			"rename": func(rt *rapid.T) { check(t, f.SetTitle(ctx, one(rt), fmt.Sprint("title ", made))) },
			"delete": func(rt *rapid.T) { check(t, f.Delete(ctx, one(rt), nil)) },
			"fork": func(rt *rapid.T) {
				id := one(rt)
				if must(f.Get(ctx, id)).Save > 0 {
					must(f.Fork(ctx, id, 0, info(rt)))
				}
			},
			"import": func(rt *rapid.T) {
				c := must(other.Create(ctx, info(rt)))
				other.clock = other.clock.Add(time.Duration(rapid.IntRange(0, 90).Draw(rt, "minutes")) * time.Minute)
				check(t, c.AppendTurn(ctx, newTurn(t, fmt.Sprint(made))))
				must(c.Save(ctx, nil))
				records := must(other.Records(ctx, c.ID()))
				r := f.Receive(&conversation.Records{ID: c.ID()}, nil)
				check(t, r.Create(ctx, records.Conversation))
				check(t, r.Append(ctx, records.Saves[0], nil))
			},
			"agent": func(rt *rapid.T) {
				made++
				next := must(f.Continue(ctx, one(rt), &agentv1.ConversationStateStructure{ReadPaths: []string{fmt.Sprint(made)}}, "agent"))
				check(t, f.blobs.Put(ctx, next.Root))
				check(t, f.rows.Commit(ctx, &next.Batch))
			},
			"purge": func(rt *rapid.T) {
				to := rapid.SampledFrom(someWorkspaces).Draw(rt, "to")
				must(f.Rewrite(ctx, one(rt), func(row kv.Row) ([]byte, []blob.ID, error) {
					rec := new(stetv1.ConversationRecord)
					if !keyspace.Conversations().Contains(row.Key) || proto.Unmarshal(row.Value, rec) != nil || rec.GetWorkspace() == to {
						return nil, nil, nil
					}
					rec.Workspace = to
					value, err := proto.Marshal(rec)
					return value, nil, err
				}))
			},
			"time passes": func(rt *rapid.T) {
				f.clock = f.clock.Add(time.Duration(rapid.IntRange(-60, 240).Draw(rt, "minutes")) * time.Minute)
			},
			"an earlier release":   func(rt *rapid.T) { f.unfile(t) },
			"one without an order": func(rt *rapid.T) { check(t, f.Unspan(ctx)) },
			"another process":      func(rt *rapid.T) { f.Store = conversation.New(f.blobs, f.rows, f.options()) },
			"file all":             func(rt *rapid.T) { check(t, f.FileAll(ctx, nil)) },
			"":                     func(rt *rapid.T) { f.agree(t) },
		})
		f.sound(t)
		check(t, f.FileAll(ctx, nil))
		f.agree(t)
		f.sound(t)
		f.exact(t)
	})
}

// unfile makes the store one of an earlier release, which has no rows of filters.
func (f *fixture) unfile(t testing.TB) {
	t.Helper()
	check(t, f.rows.Commit(t.Context(), &kv.Batch{Delete: []string{conversation.FiltersKey}, DeleteRange: []kv.Range{keyspace.AllConversationsOf()}}))
}

// fill makes conversations.
func (f *fixture) fill(t testing.TB, n int) {
	t.Helper()
	for i := range n {
		must(f.Create(t.Context(), conversation.Info{
			ID: fmt.Sprintf("c%04d", i), Workspace: someWorkspaces[i%2], Agent: someAgents[i%3],
		}))
	}
}

// failing is a store whose commits fail after some.
type failing struct {
	kv.Store
	left int
}

var errKilled = errors.New("killed")

func (f *failing) Commit(ctx context.Context, b *kv.Batch) error {
	if f.left--; f.left < 0 {
		return errKilled
	}
	return f.Store.Commit(ctx, b)
}

// TestFilingContinues ends the filing of an old store at each commit, and lets the next
// one go on, with writers in between.
func TestFilingContinues(t *testing.T) {
	ctx := t.Context()
	f := newFixture(t)
	f.fill(t, 1200)
	f.unfile(t)
	f.Store = conversation.New(f.blobs, f.rows, nil) // a process that has not read the row
	commits := 0
	for {
		var read int
		rows := &failing{f.rows, 2}
		err := conversation.New(f.blobs, rows, nil).FileAll(ctx, func(done int) { read = done })
		if err == nil {
			break
		}
		if !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		if commits++; commits > 5 || read > 1000 {
			t.Fatalf("%d attempts, the last read %d", commits, read)
		}
		must(f.Create(ctx, conversation.Info{ID: fmt.Sprint("b", commits), Workspace: "/a", Agent: "x"}))
		check(t, f.Delete(ctx, fmt.Sprintf("c%04d", commits), nil))
		f.sound(t)
		if commits == 1 || testenv.Full() {
			f.agree(t)
		}
	}
	if commits == 0 {
		t.Error("everything was one commit")
	}
	f.agree(t)
	f.sound(t)
}

// TestFilingAtOnce lets several processes do it, and writers create and delete.
func TestFilingAtOnce(t *testing.T) {
	ctx := t.Context()
	f := newFixture(t)
	f.fill(t, 700)
	f.unfile(t)
	done := make(chan error)
	for n := range 4 {
		store := conversation.New(f.blobs, f.rows, nil)
		go func() {
			if n < 2 {
				done <- store.FileAll(ctx, nil)
				return
			}
			var errs []error
			for i := range 40 {
				_, err := store.Create(ctx, conversation.Info{ID: fmt.Sprintf("d%d-%d", n, i), Workspace: "/b", Agent: "y"})
				errs = append(errs, err, store.Delete(ctx, fmt.Sprintf("c%04d", i*4+n), nil))
			}
			done <- errors.Join(errs...)
		}()
	}
	for range 4 {
		check(t, <-done)
	}
	check(t, f.FileAll(ctx, nil))
	f.agree(t)
	f.sound(t)
}

// TestFilteredListReadsOnlyItsPage counts the rows and keys that a page of a filtered list
// reads. There are four times as many conversations, and the page reads no more: neither
// where they were changed one after the other nor where all were changed at once.
func TestFilteredListReadsOnlyItsPage(t *testing.T) {
	filters := []conversation.ListOptions{
		{Agent: "nobody"}, {Workspace: "/rare"}, {Workspace: "/a"}, {Agent: "x"}, {Workspace: "/b", Agent: "x"},
	}
	read := func(n int, pause time.Duration) (counts []int64) {
		f := newFixture(t)
		for i := range n {
			if i%(n/5) == n/10 {
				must(f.Create(t.Context(), conversation.Info{ID: fmt.Sprint("rare", i), Workspace: "/rare"}))
			}
			c := must(f.Create(t.Context(), conversation.Info{ID: fmt.Sprintf("c%05d", i), Workspace: someWorkspaces[1+i%2], Agent: someAgents[i%3]}))
			if i%8 == 0 { // moves it
				f.clock = f.clock.Add(30 * pause)
				check(t, c.AppendTurn(t.Context(), newTurn(t, "more")))
				must(c.Save(t.Context(), nil))
			}
			f.clock = f.clock.Add(pause)
			if pause == 0 {
				f.clock = f.clock.Add(-time.Second + time.Millisecond)
			}
		}
		rows := &counting{Store: f.rows}
		store := conversation.New(f.blobs, rows, nil)
		for _, opts := range filters {
			for range 2 {
				opts.Limit = 10
				rows.n.Store(0)
				page := must(store.List(t.Context(), &opts))
				counts = append(counts, rows.n.Load())
				if opts.Workspace == "/a" && len(page.Conversations) != 10 {
					t.Errorf("%d conversations", len(page.Conversations))
				}
				opts.Cursor = page.Next
			}
		}
		return counts
	}
	pauses := []time.Duration{time.Minute, 0, time.Hour}
	for _, pause := range pauses[:testenv.Sizes(1, len(pauses), len(pauses))] {
		small, large := read(2000, pause), read(8000, pause)
		t.Logf("%s apart: %v", pause, large)
		for i := range small {
			if large[i] > small[i]+small[i]/10 || large[i] > 400 {
				t.Errorf("%s apart, %+v, page %d: %d rows of 8,000 conversations, %d of 2,000", pause, filters[i/2], i%2+1, large[i], small[i])
			}
		}
	}
}

// counting counts the rows that are read, several at once.
type counting struct {
	kv.Store
	n atomic.Int64
}

func (c *counting) Get(ctx context.Context, key string) (kv.Row, error) {
	c.n.Add(1)
	return c.Store.Get(ctx, key)
}

func (c *counting) Scan(ctx context.Context, in kv.Range, opts kv.ScanOptions) iter.Seq2[kv.Row, error] {
	return func(yield func(kv.Row, error) bool) {
		for row, err := range c.Store.Scan(ctx, in, opts) {
			c.n.Add(1)
			if !yield(row, err) {
				return
			}
		}
	}
}

// TestSavesMoveFilingsRarely counts what saves write for the lists: those that follow soon
// change nothing.
func TestSavesMoveFilingsRarely(t *testing.T) {
	f := newFixture(t)
	rows := &watching{Store: f.rows, in: keyspace.AllConversationsOf()}
	store := conversation.New(f.blobs, rows, f.options())
	c := must(store.Create(t.Context(), conversation.Info{ID: "c", Workspace: "/a", Agent: "x"}))
	rows.touched = 0
	for range 200 {
		f.clock = f.clock.Add(15 * time.Second)
		check(t, c.AppendTurn(t.Context(), newTurn(t, "more")))
		must(c.Save(t.Context(), nil))
	}
	if rows.touched == 0 || rows.touched > 200*16/1048+2 {
		t.Errorf("%d of 200 saves in 53 minutes moved the conversation", rows.touched)
	}
	f.agree(t)
	f.sound(t)
}

// watching counts commits that change rows of a range.
type watching struct {
	kv.Store
	in      kv.Range
	touched int
}

func (w *watching) Commit(ctx context.Context, b *kv.Batch) error {
	if b.Touches(w.in) {
		w.touched++
	}
	return w.Store.Commit(ctx, b)
}

// TestDamagedFilters damages the row with the salt: lists are whole, and conversations
// can be created and removed.
func TestDamagedFilters(t *testing.T) {
	ctx := t.Context()
	f := newFixture(t)
	f.fill(t, 20)
	check(t, f.rows.Commit(ctx, &kv.Batch{Set: []kv.Set{{Key: conversation.FiltersKey, Value: []byte("?")}}}))
	f.Store = conversation.New(f.blobs, f.rows, nil)
	must(f.Create(ctx, conversation.Info{ID: "new", Workspace: "/a", Agent: "x"}))
	check(t, f.Delete(ctx, "c0003", nil))
	f.agree(t)
	check(t, f.rows.Commit(ctx, &kv.Batch{Delete: []string{conversation.FiltersKey}})) // set aside
	must(f.Create(ctx, conversation.Info{ID: "newer", Workspace: "/a", Agent: "x"}))
	f.agree(t)
	check(t, f.FileAll(ctx, nil))
	f.agree(t)
	f.sound(t)
}

// TestLostFilingIsMissed removes the row of one conversation.
func TestLostFilingIsMissed(t *testing.T) {
	ctx := t.Context()
	f := newFixture(t)
	f.fill(t, 6)
	for row, err := range f.rows.Scan(ctx, keyspace.AllConversationsOf(), kv.ScanOptions{KeysOnly: true, Limit: 1}) {
		check(t, err)
		check(t, f.rows.Commit(ctx, &kv.Batch{Delete: []string{row.Key}}))
	}
	report := must(f.Check(ctx, nil))
	if len(report.Damage) != 1 || !strings.Contains(report.Damage[0].Err.Error(), "lacks the conversation") {
		t.Errorf("damage %v", report.Damage)
	}
}

// TestUnreadableConversationLeavesNoFiling removes one whose record cannot be read.
func TestUnreadableConversationLeavesNoFiling(t *testing.T) {
	ctx := t.Context()
	f := newFixture(t)
	f.fill(t, 6)
	check(t, f.rows.Commit(ctx, &kv.Batch{Set: []kv.Set{{Key: keyspace.Conversation("c0001"), Value: []byte("\xff")}}}))
	page := must(f.List(ctx, &conversation.ListOptions{Agent: "x"}))
	if len(page.Damaged) != 1 || len(page.Conversations) != 1 {
		t.Errorf("listed %v, damaged %v", page.Conversations, page.Damaged)
	}
	check(t, f.Delete(ctx, "c0001", nil))
	f.sound(t)
	f.agree(t)
}

// TestDamagedRowsInTheListOfAll damages the record of one conversation and the last save of
// another: the list names both, a check reports both, and the others are listed.
func TestDamagedRowsInTheListOfAll(t *testing.T) {
	ctx := t.Context()
	f := newFixture(t)
	for _, id := range []string{"a", "b", "c"} {
		f.grow(t, must(f.Create(ctx, conversation.Info{ID: id})), "one")
	}
	record, save := keyspace.Conversation("a"), keyspace.Save("b", 1)
	check(t, f.rows.Commit(ctx, &kv.Batch{Set: []kv.Set{{Key: record, Value: []byte("\xff")}, {Key: save, Value: []byte("\xff")}}}))
	page := must(f.List(ctx, nil))
	var damaged []string
	for _, bad := range page.Damaged {
		damaged = append(damaged, bad.ID)
	}
	slices.Sort(damaged)
	if !slices.Equal(damaged, []string{"a", "b"}) || len(page.Conversations) != 1 || page.Conversations[0].ID != "c" {
		t.Errorf("listed %v, damaged %v", page.Conversations, page.Damaged)
	}
	reported := make(map[string]bool)
	for _, d := range must(f.Check(ctx, nil)).Damage {
		reported[d.Key] = true
	}
	if !reported[record] || !reported[save] {
		t.Errorf("a check reports %v", reported)
	}
}
