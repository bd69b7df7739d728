package checkpoint

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/internal/testenv"
	"github.com/stet-dev/stet/kv"
)

// aged is a workspace with a clock that the test moves.
func aged(t *testing.T) (*fixture, *clock) {
	f, c := newFixture(t), newClock()
	f.opts.Now = c.Now
	f.reopen()
	return f, c
}

func (f *fixture) service() *Service { return f.w.s }

// forget applies a policy and returns the names of what went, such as c1.
func (f *fixture) forget(p Policy) []string {
	f.t.Helper()
	ctx := f.t.Context()
	all, err := f.service().Retainable(ctx, f.sizes(p))
	must(f.t, err)
	plan := PlanRetention(all, p, f.opts.Now())
	var names []string
	for _, id := range plan.Checkpoints[f.w.ID()] {
		rec, err := f.service().Get(ctx, id)
		must(f.t, err)
		names = append(names, rec.Name())
	}
	n, err := f.service().ApplyRetention(ctx, plan, "tester")
	must(f.t, err)
	if n != len(names) {
		f.t.Errorf("forgot %d checkpoints, planned %v", n, names)
	}
	return names
}

// sizes lists blobs if a policy has a budget.
func (f *fixture) sizes(p Policy) blob.Lister {
	if p.MaxBytes == 0 {
		return nil
	}
	return f.memory
}

func (f *fixture) names() []string {
	f.t.Helper()
	var out []string
	for rec, err := range f.w.List(f.t.Context(), nil) {
		must(f.t, err)
		out = append(out, rec.Name())
	}
	return out
}

func TestRetentionByAgeAndCount(t *testing.T) {
	f, c := aged(t)
	for i := range 6 {
		f.write("a.txt", fmt.Sprintln("version", i))
		f.save(Request{Conversation: "talk"})
		c.advance(24 * time.Hour)
	}
	same(t, "nothing to forget", f.forget(Policy{MaxAge: 30 * 24 * time.Hour}), nil)
	same(t, "by age", f.forget(Policy{MaxAge: 4*24*time.Hour + time.Hour}), []string{"c1", "c2"})
	same(t, "by count", f.forget(Policy{MaxCount: 3}), []string{"c3"})
	same(t, "the latest stays", f.forget(Policy{MaxAge: time.Minute}), []string{"c4", "c5"})
	same(t, "what is left", f.names(), []string{"c6"})
	var left []string
	for rec, err := range f.service().ListConversation(t.Context(), "talk") {
		must(t, err)
		left = append(left, rec.Name())
	}
	same(t, "of the conversation", left, []string{"c6"})
	if _, err := f.w.Resolve(t.Context(), "c2", ""); !errors.Is(err, ErrNotFound) {
		t.Errorf("resolve a forgotten one: %v", err)
	}
	for op, err := range f.service().Operations(t.Context()) {
		must(t, err)
		if op.Kind != OpForget || op.Author != "tester" || op.Description != "forget 2 checkpoints, c4 to c5" {
			t.Errorf("the log has %+v", op)
		}
		break
	}
	f.write("a.txt", "more\n")
	if rec := f.save(Request{}); rec.Name() != "c7" {
		t.Errorf("the next one is %s: a number was used twice", rec.Name())
	}
}

func TestRetentionByBytes(t *testing.T) {
	f, c := aged(t)
	rnd := rand.New(rand.NewPCG(1, 2))
	big := func() string {
		b := make([]byte, 50_000)
		for i := range b {
			b[i] = byte(rnd.Uint32())
		}
		return string(b)
	}
	f.write("stays.bin", big())
	for range 5 {
		f.write("changes.bin", big())
		f.save(Request{})
		c.advance(24 * time.Hour)
	}
	p := Policy{MaxBytes: 170_000} // what stays, and two versions of what changes
	all, err := f.service().Retainable(t.Context(), f.sizes(p))
	must(t, err)
	plan := PlanRetention(all, p, c.Now())
	if got := plan.Freed; got < 150_000 || got > 155_000 {
		t.Errorf("three versions free %d bytes", got)
	}
	if plan.Left > p.MaxBytes || plan.Left < 150_000 {
		t.Errorf("%d bytes are left", plan.Left)
	}
	same(t, "by bytes", f.forget(p), []string{"c1", "c2", "c3"})
	f.rewind(RewindRequest{To: "c4"})
	same(t, "a second time", f.forget(p), nil)
}

// Pins, the present, the next undo and redo, and what is young stay.
func TestWhatRetentionHolds(t *testing.T) {
	f, c := aged(t)
	var recs []*Record
	for i := range 4 {
		f.write("a.txt", fmt.Sprintln("version", i))
		recs = append(recs, f.save(Request{}))
		c.advance(24 * time.Hour)
	}
	must(t, f.service().Pin(t.Context(), "good", recs[1].ID, "me"))
	f.rewind(RewindRequest{To: recs[0].ID}) // c5 before, c6 after
	c.advance(24 * time.Hour)
	f.write("b.txt", "b\n")
	f.save(Request{}) // c7
	c.advance(24 * time.Hour)
	f.write("b.txt", "bb\n")
	f.save(Request{}) // c8
	c.advance(30 * time.Minute)
	f.write("b.txt", "bbb\n")
	f.save(Request{}) // c9
	same(t, "forgotten", f.forget(Policy{MaxAge: time.Nanosecond}), []string{"c1", "c3", "c4", "c7"})
	same(t, "left", f.names(), []string{"c9", "c8", "c6", "c5", "c2"})
	all, err := f.service().Retainable(t.Context(), nil)
	must(t, err)
	want := map[Held]int{HeldPinned: 1, HeldUndo: 2, HeldYoung: 1, HeldLatest: 1}
	if got := PlanRetention(all, Policy{MaxAge: time.Nanosecond, MaxCount: 1}, c.Now().Add(time.Second)).Kept; !maps.Equal(got, want) {
		t.Errorf("kept %v, want %v", got, want)
	}
	c.advance(2 * time.Hour)
	if _, err := f.w.Undo(t.Context(), nil); err != nil {
		t.Errorf("undo after retention: %v", err)
	}
	if _, err := f.w.Redo(t.Context(), nil); err != nil {
		t.Errorf("redo after retention: %v", err)
	}
	f.rewind(RewindRequest{To: "pin:good"})
	if got := testenv.Snapshot(t, f.dir)["a.txt"]; got != "-rw-r--r-- version 1\n" {
		t.Errorf("the pinned state came back as %q", got)
	}
}

// Who wrote what between checkpoints of which those between are gone is not known:
// a conversation's rewind takes nothing of it unless it is told to.
func TestRewindOverForgottenCheckpoints(t *testing.T) {
	f, c := aged(t)
	f.write("mine.txt", "mine\n", "agent.txt", "first\n")
	start := f.before("agent", 1)
	must(t, f.service().Pin(t.Context(), "start", start.ID, "me"))
	f.write("agent.txt", "by the agent\n", "created.txt", "by the agent\n")
	f.after("agent", 1)
	c.advance(24 * time.Hour)
	f.write("mine.txt", "edited by me\n", "made.txt", "by me\n")
	f.before("agent", 2)
	c.advance(time.Minute)
	f.write("late.txt", "by the agent\n")
	f.after("agent", 2)
	c.advance(24 * time.Hour)
	same(t, "with everything kept", lines(f.plan(RewindRequest{To: "pin:start"})),
		[]string{"restore agent.txt", "delete created.txt", "delete late.txt", "keep made.txt", "keep mine.txt"})

	same(t, "forgotten", f.forget(Policy{MaxAge: time.Hour, MaxCount: 1}), []string{"c2", "c3"})
	want := []string{"conflict agent.txt", "conflict created.txt", "conflict late.txt", "conflict made.txt", "conflict mine.txt"}
	p := f.plan(RewindRequest{To: "pin:start"})
	same(t, "plan", lines(p), want)
	for _, a := range p.Actions {
		if a.Writer.Class != ByForgotten || !strings.HasSuffix(a.Reason, "ed between checkpoints that are no longer kept") {
			t.Errorf("%s: %+v, %q", a.Path, a.Writer, a.Reason)
		}
	}
	now := testenv.Snapshot(t, f.dir)
	f.rewind(RewindRequest{To: "pin:start"})
	f.expect(now)
	f.rewind(RewindRequest{To: "pin:start", Choice: Theirs})
	f.expect(map[string]string{"mine.txt": "-rw-r--r-- mine\n", "agent.txt": "-rw-r--r-- first\n"})
	if _, err := f.w.Plan(t.Context(), RewindRequest{OnlyTurn: 2, Conversation: "agent"}); !errors.Is(err, ErrNotFound) {
		t.Errorf("a turn whose beginning is forgotten: %v", err)
	}
}

// A pin that comes while a plan is carried out wins, and so does a rewind.
func TestRetentionAgainstPins(t *testing.T) {
	f, c := aged(t)
	var recs []*Record
	for i := range 60 {
		f.write("a.txt", fmt.Sprintln("version", i))
		recs = append(recs, f.save(Request{}))
		c.advance(2 * time.Hour)
	}
	ctx, s := t.Context(), f.service()
	all, err := s.Retainable(ctx, nil)
	must(t, err)
	plan := PlanRetention(all, Policy{MaxCount: 1}, c.Now())
	var wg sync.WaitGroup
	var pinned sync.Map
	wg.Go(func() {
		for i, rec := range recs {
			switch err := s.Pin(ctx, fmt.Sprint("p", i), rec.ID, "me"); {
			case err == nil:
				pinned.Store(rec.ID, true)
			case !errors.Is(err, ErrNotFound) && !errors.Is(err, kv.ErrConflict):
				t.Errorf("pin: %v", err)
			}
		}
	})
	for ids := range slices.Chunk(plan.Checkpoints[f.w.ID()], 4) {
		_, err := s.ApplyRetention(ctx, RetentionPlan{Checkpoints: map[string][]string{f.w.ID(): ids}}, "me")
		must(t, err)
	}
	wg.Wait()
	pinned.Range(func(id, _ any) bool {
		if _, err := s.Get(ctx, id.(string)); err != nil {
			t.Errorf("a pinned checkpoint: %v", err)
		}
		return true
	})
}

// A workspace whose rewind is not finished keeps everything.
func TestRetentionWaitsForRewinds(t *testing.T) {
	f, c := aged(t)
	for i := range 3 {
		f.write("a.txt", fmt.Sprintln("version", i))
		f.save(Request{})
		c.advance(24 * time.Hour)
	}
	all, err := f.service().Retainable(t.Context(), nil)
	must(t, err)
	plan := PlanRetention(all, Policy{MaxCount: 1}, c.Now())
	journal := kv.Set{Key: keyspace.Journal(f.w.ID()), Value: []byte("x")}
	must(t, f.rows.Commit(t.Context(), &kv.Batch{Set: []kv.Set{journal}}))
	n, err := f.service().ApplyRetention(t.Context(), plan, "me")
	if n != 0 || err != nil {
		t.Errorf("forgot %d, %v", n, err)
	}
	all, err = f.service().Retainable(t.Context(), nil)
	must(t, err)
	for _, r := range all {
		if r.Held != HeldRewind && r.Held != HeldLatest {
			t.Errorf("c%d: %q", r.Number, r.Held)
		}
	}
}

// Ten undos in a row, and ten redos, are possible whatever a policy forgot. The
// one after them says why it is not.
func TestUndoAfterRetention(t *testing.T) {
	f, c := aged(t)
	f.write("a.txt", "there\n")
	must(t, f.service().Pin(t.Context(), "start", f.save(Request{}).ID, "me"))
	content := func() []string { return []string{testenv.Snapshot(t, f.dir)["a.txt"]} }
	start := content()
	var states [][]string
	for i := range undoDepth + 2 {
		f.write("a.txt", fmt.Sprintln("edit", i))
		f.save(Request{})
		states = append(states, content())
		f.rewind(RewindRequest{To: "pin:start"})
		c.advance(24 * time.Hour)
	}
	f.forget(Policy{MaxAge: time.Hour})
	same(t, "the first state", content(), start)
	for i := range undoDepth {
		if _, err := f.w.Undo(t.Context(), &UndoOptions{Choice: Theirs}); err != nil {
			t.Fatalf("undo %d: %v", i+1, err)
		}
		same(t, fmt.Sprint("undo ", i+1), content(), states[len(states)-1-i])
		c.advance(24 * time.Hour)
		f.forget(Policy{MaxAge: time.Hour})
	}
	present := content()
	_, err := f.w.Undo(t.Context(), &UndoOptions{Choice: Theirs})
	if !errors.Is(err, ErrNothing) || !strings.Contains(err.Error(), "forgotten") {
		t.Errorf("undo of a forgotten state: %v", err)
	}
	same(t, "after an undo that failed", content(), present)
	for i := range undoDepth {
		if _, err := f.w.Redo(t.Context(), &UndoOptions{Choice: Theirs}); err != nil {
			t.Fatalf("redo %d: %v", i+1, err)
		}
		before := start // the undo that it reverts
		if n := len(states) - undoDepth + 1 + i; n < len(states) {
			before = states[n]
		}
		same(t, fmt.Sprint("redo ", i+1), content(), before)
	}
}
