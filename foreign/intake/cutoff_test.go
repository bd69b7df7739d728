package intake_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/intake"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/kv/memkv"
)

func (f *fixture) remove(id string) {
	f.t.Helper()
	if err := f.store.Delete(context.Background(), id, nil); err != nil {
		f.t.Fatal(err)
	}
}

// purged says that a content of a session was purged, as a purge does before it rewrites.
func (f *fixture) purged(id string) {
	f.t.Helper()
	if err := f.store.CutOff(context.Background(), id, conversation.Cutoff{Source: "toy", Until: time.Now(), Purged: true}); err != nil {
		f.t.Fatal(err)
	}
}

// holds reports whether a blob has a text.
func (f *fixture) holds(text string) bool {
	f.t.Helper()
	found := false
	err := f.blobs.(*memblob.Store).List(context.Background(), blob.ID{}, func(i blob.Info) error {
		data, err := f.blobs.Get(context.Background(), i.ID)
		found = found || bytes.Contains(data, []byte(text))
		return err
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return found
}

// fresh returns a store that has only the cutoffs of this one: no blobs that wait for a
// collection.
func (f *fixture) fresh() *fixture {
	f.t.Helper()
	ctx := context.Background()
	blobs := memblob.New()
	next := &fixture{t: f.t, blobs: blobs, rows: memkv.New(blobs), path: f.path, id: f.id}
	next.store = conversation.New(next.blobs, next.rows, nil)
	for row, err := range f.rows.Scan(ctx, keyspace.Cutoffs(), kv.ScanOptions{}) {
		if err == nil {
			err = next.rows.Commit(ctx, &kv.Batch{Set: []kv.Set{{Key: row.Key, Value: row.Value}}})
		}
		if err != nil {
			f.t.Fatal(err)
		}
	}
	return next
}

func (f *fixture) absent(id string) {
	f.t.Helper()
	if _, err := f.store.Get(context.Background(), id); !errors.Is(err, conversation.ErrNotFound) {
		f.t.Errorf("conversation %s is there: %v", id, err)
	}
}

func only(s foreign.Session) func(func(foreign.Session, error) bool) {
	return func(yield func(foreign.Session, error) bool) { yield(s, nil) }
}

func TestARemovedSessionIsLeftAlone(t *testing.T) {
	f := newFixture(t)
	f.write(toyLine{ID: "t1", Prompt: "one", Reply: "a"}, toyLine{ID: "t2", Prompt: "two", Reply: "b"})
	f.pass()
	f.remove("s1")
	f = f.fresh()
	totals, err := intake.New(f.blobs, f.rows, toy{}).Sessions(context.Background(), only(f.session()), nil)
	if err != nil || totals.Removed != 1 || totals.Conversations != 0 || len(totals.Skipped) != 0 {
		t.Errorf("got %+v, %v", totals, err)
	}
	f.absent("s1")
	if tip, err := intake.Tip(context.Background(), f.store, "s1"); err != nil || tip.Seq != 0 {
		t.Errorf("its last save: %+v, %v", tip, err)
	}
	if f.holds("one") {
		t.Error("its content is in the store")
	}

	// What it gets from now on is a conversation that begins there.
	f.write(toyLine{ID: "t3", Prompt: "three", Reply: "c", Later: true})
	if r := f.pass(); !r.Created || r.Turns != 1 {
		t.Errorf("got %+v", r)
	}
	f.write(toyLine{ID: "t4", Prompt: "four", Follows: "t3", Later: true})
	f.pass()
	if got := f.texts(); got != "three:c four" {
		t.Errorf("got %s", got)
	}
	if f.holds("one") {
		t.Error("the earlier turns are in the store")
	}
	// Reading from the beginning again does not change that.
	f.write(toyLine{More: true, Reply: "late"})
	f.pass()
	if got := f.texts(); got != "three:c four:late" || f.holds("one") {
		t.Errorf("got %s", got)
	}
}

func TestARemovedSessionIsCopiedAgain(t *testing.T) {
	f := newFixture(t)
	f.write(toyLine{ID: "t1", Prompt: "one", Reply: "a"}, toyLine{ID: "t2", Prompt: "two", Reply: "b"})
	f.pass()
	f.remove("s1")
	ctx := context.Background()
	again := func() intake.Result {
		t.Helper()
		r, err := intake.New(f.blobs, f.rows, toy{}).Again(false).Session(ctx, f.session())
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := again(); !r.Created || r.Turns != 2 {
		t.Errorf("got %+v", r)
	}
	if _, version, err := f.store.Cutoff(ctx, "s1"); err != nil || version != 0 {
		t.Errorf("the cutoff is there: %d, %v", version, err)
	}
	f.sameSource()
	f.write(toyLine{ID: "t3", Prompt: "three"})
	if r := f.pass(); r.Turns != 1 {
		t.Errorf("got %+v", r)
	}

	// With later turns in the store, it says what to do.
	f.remove("s1")
	f.write(toyLine{ID: "t4", Prompt: "four", Later: true})
	f.pass()
	if r := again(); !strings.Contains(r.Skipped, "stet rm") {
		t.Errorf("got %+v", r)
	}
	f.remove("s1")
	if r := again(); r.Turns != 4 {
		t.Errorf("got %+v", r)
	}
}

// A commit that fails or that nobody learns of leaves either the cutoff or the conversation.
func TestTheCutoffGoesWithTheNewConversation(t *testing.T) {
	for after := range 3 {
		f := newFixture(t)
		f.write(toyLine{ID: "t1", Prompt: "one", Reply: "a"}, toyLine{ID: "t2", Prompt: "two", Reply: "b"})
		f.pass()
		f.remove("s1")
		ctx := context.Background()
		dying := &dyingRows{Store: f.rows, left: after}
		_, err := intake.New(f.blobs, dying, toy{}).Again(false).Session(ctx, f.session())
		if err == nil {
			t.Fatal("the pass did not fail")
		}
		_, getErr := f.store.Get(ctx, "s1")
		_, version, err := f.store.Cutoff(ctx, "s1")
		if err != nil || (getErr == nil) != (version == 0) {
			t.Errorf("after %d commits: conversation %v, cutoff %d, %v", after, getErr, version, err)
		}
	}
}

// dyingRows fails after some commits.
type dyingRows struct {
	kv.Store
	left int
}

func (d *dyingRows) Commit(ctx context.Context, b *kv.Batch) error {
	if d.left--; d.left < 0 {
		return errors.New("died")
	}
	return d.Store.Commit(ctx, b)
}

// After a purge the conversation goes on: what was there before, also the raw record, stays
// as the purge left it.
func TestAPurgedSessionIsNotReadAgain(t *testing.T) {
	f := newFixture(t)
	f.write(toyLine{ID: "t1", Prompt: "one"}, toyLine{ID: "t2", Prompt: "two", Reply: "b", Open: true})
	f.pass()
	before := f.source()
	f.write(toyLine{More: true, Reply: "the secret"}) // not copied yet
	f.purged("s1")
	f.pass()
	f.write(toyLine{ID: "t3", Prompt: "three", Later: true})
	f.pass()
	if got := f.texts(); got != "one two:b three" {
		t.Errorf("got %s", got)
	}
	if got := f.source(); got != before || f.holds("the secret") {
		t.Errorf("the raw record has %s", got)
	}

	// Its agent rewrites the record.
	data, err := os.ReadFile(f.path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(f.path, append([]byte(`{"ID":"t0","Prompt":"the secret"}`+"\n"), data...), 0o600); err != nil {
		t.Fatal(err)
	}
	f.pass()
	if f.holds("the secret") {
		t.Error("a rewritten record brought it back")
	}

	// A removed one is copied again only by those who say so twice.
	f.remove("s1")
	totals, err := intake.New(f.blobs, f.rows, toy{}).Again(false).Sessions(context.Background(), only(f.session()), nil)
	if err != nil || totals.Purged != 0 || f.holds("the secret") {
		t.Errorf("got %+v, %v", totals, err)
	}
	if got := f.texts(); got != "three" {
		t.Errorf("got %s", got)
	}
}

func TestAPurgedAndRemovedSessionNeedsAWordMore(t *testing.T) {
	f := newFixture(t)
	f.write(toyLine{ID: "t1", Prompt: "the secret"})
	f.pass()
	f.purged("s1")
	f.remove("s1")
	f = f.fresh()
	ctx := context.Background()
	totals, err := intake.New(f.blobs, f.rows, toy{}).Again(false).Sessions(ctx, only(f.session()), nil)
	if err != nil || totals.Purged != 1 || f.holds("the secret") {
		t.Errorf("got %+v, %v", totals, err)
	}
	totals, err = intake.New(f.blobs, f.rows, toy{}).Again(true).Sessions(ctx, only(f.session()), nil)
	if err != nil || totals.Conversations != 1 || !f.holds("the secret") {
		t.Errorf("got %+v, %v", totals, err)
	}
}

// A session that continues one that was cut off has the turns of that one again.
func TestAForkOfACutOffSession(t *testing.T) {
	ctx := context.Background()
	lines := []toyLine{{ID: "t1", Prompt: "one"}, {ID: "t2", Prompt: "two"}}
	for name, cut := range map[string]func(*fixture){
		"removed": func(f *fixture) { f.remove("s1") },
		"purged":  func(f *fixture) { f.purged("s1") },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.write(lines...)
			f.pass()
			cut(f)
			fork := &fixture{t: t, blobs: f.blobs, rows: f.rows, store: f.store, path: f.path + "2", id: "s2"}
			fork.write(toyLine{ID: "t1", Prompt: "one", Later: true}, toyLine{ID: "t2", Prompt: "two", Later: true}, toyLine{ID: "t3", Prompt: "three", Later: true})
			s := fork.session()
			s.ForkedFrom, s.ForkedAfter = "s1", "t2"
			fork.passOf(s)
			want := map[string]string{"removed": "three", "purged": "one two three"}[name]
			if got := fork.texts(); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			if _, err := intake.SourceFiles(ctx, f.blobs, f.rows, "s2"); !errors.Is(err, intake.ErrNoSource) {
				t.Errorf("the raw record: %v", err)
			}
			// Also if nobody says any more what it continues.
			fork.write(toyLine{ID: "t4", Prompt: "four", Later: true})
			fork.pass()
			if got := fork.texts(); got != want+" four" {
				t.Errorf("got %s", got)
			}
			if _, err := intake.SourceFiles(ctx, f.blobs, f.rows, "s2"); !errors.Is(err, intake.ErrNoSource) {
				t.Errorf("the raw record: %v", err)
			}
		})
	}
}

// A subagent's session that was not copied before belongs to one that was cut off.
func TestASubagentOfACutOffSession(t *testing.T) {
	f := newFixture(t)
	f.write(toyLine{ID: "t1", Prompt: "one"})
	f.pass()
	f.purged("s1")
	sub := &fixture{t: t, blobs: f.blobs, rows: f.rows, store: f.store, path: f.path + "2", id: "s1/a"}
	sub.write(toyLine{ID: "t1", Prompt: "the secret"})
	s := sub.session()
	s.Parent = "s1"
	sub.passOf(s)
	sub.absent("s1/a")
	if f.holds("the secret") {
		t.Error("its content is in the store")
	}
	sub.write(toyLine{ID: "t2", Prompt: "later", Later: true})
	sub.passOf(s)
	if got := sub.texts(); got != "later" || f.holds("the secret") {
		t.Errorf("got %s", got)
	}
}

// A purge or a removal while a pass is at work fails the commits of the pass, which then
// starts over.
func TestCutOffWhileAPassIsAtWork(t *testing.T) {
	f := newFixture(t)
	f.write(toyLine{ID: "t1", Prompt: "one"})
	f.pass()
	f.write(toyLine{ID: "t2", Prompt: "the secret"})
	rows := &interposedRows{Store: f.rows, do: func() { f.purged("s1") }}
	if _, err := intake.New(f.blobs, rows, toy{}).Session(context.Background(), f.session()); err != nil {
		t.Fatal(err)
	}
	if got := f.texts(); got != "one" || strings.Contains(f.source(), "the secret") {
		t.Errorf("got %s, %s", got, f.source())
	}
}

// interposedRows does something before the first commit.
type interposedRows struct {
	kv.Store
	do func()
}

func (r *interposedRows) Commit(ctx context.Context, b *kv.Batch) error {
	if do := r.do; do != nil {
		r.do = nil
		do()
	}
	return r.Store.Commit(ctx, b)
}

// A cutoff that cannot be read copies nothing, and a removal keeps that something may have
// been purged.
func TestADamagedCutoff(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	f.write(toyLine{ID: "t1", Prompt: "one"})
	f.pass()
	if err := f.rows.Commit(ctx, &kv.Batch{Set: []kv.Set{{Key: keyspace.Cutoff("s1"), Value: []byte("x")}}}); err != nil {
		t.Fatal(err)
	}
	f.write(toyLine{ID: "t2", Prompt: "two"})
	totals, err := intake.New(f.blobs, f.rows, toy{}).Sessions(ctx, only(f.session()), nil)
	if err != nil || totals.Damaged() != 1 || f.texts() != "one" {
		t.Errorf("got %+v, %v, %s", totals, err, f.texts())
	}
	f.remove("s1")
	if cut, _, err := f.store.Cutoff(ctx, "s1"); err != nil || !cut.Removed || !cut.Purged || cut.Source != "toy" {
		t.Errorf("got %+v, %v", cut, err)
	}
}
