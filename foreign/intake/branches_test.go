package intake_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/intake"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

func TestRewoundSessionKeepsBothBranches(t *testing.T) {
	f := newFixture(t)
	f.write(toyLine{ID: "t1", Prompt: "one"}, toyLine{ID: "t2", Prompt: "two"})
	f.pass()
	f.write(toyLine{ID: "t3", Follows: "t1", Prompt: "other"}, toyLine{ID: "t4", Prompt: "more"})
	f.pass()
	if got := f.texts(); got != "one other more" {
		t.Errorf("got %s", got)
	}
	if _, err := f.store.MessageHead(context.Background(), "s1", "t2"); err != nil {
		t.Errorf("turn 2 is gone: %v", err)
	}
	f.write(toyLine{ID: "t5", Follows: foreign.Beginning, Prompt: "new"})
	f.pass()
	if got := f.texts(); got != "new" {
		t.Errorf("got %s", got)
	}
}

// After a rewind to an earlier turn the session still ends where it ended, although the record
// says more about that turn than when it was copied.
func TestRewindToAnEarlierTurn(t *testing.T) {
	f := newFixture(t)
	rewind := func(seq uint64) {
		t.Helper()
		conv, err := f.store.Open(t.Context(), "s1")
		if err == nil {
			_, err = conv.Rewind(t.Context(), seq, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	f.write(toyLine{ID: "t1", Prompt: "one"}, toyLine{ID: "t2", Prompt: "two", Open: true})
	f.pass()
	rewind(1)
	f.write(toyLine{ID: "t2", More: true}, toyLine{ID: "t3", Follows: "t2", Prompt: "three"})
	f.pass()
	rewind(2)
	f.pass()
	tip, err := intake.Tip(t.Context(), f.store, "s1")
	if err != nil || tip.MessageID != "t3" || tip.Turns != 3 {
		t.Errorf("the session ends with %q, turn %d, %v", tip.MessageID, tip.Turns, err)
	}
	if got := f.texts(); got != "one two" {
		t.Errorf("got %s", got)
	}
	f.write(toyLine{ID: "t4", Prompt: "four"})
	f.pass()
	if got := f.texts(); got != "one two three four" {
		t.Errorf("got %s", got)
	}
}

func TestForkSharesItsOrigin(t *testing.T) {
	f := newFixture(t)
	f.write(toyLine{ID: "t1", Prompt: "one"}, toyLine{ID: "t2", Prompt: "two"})
	f.pass()
	f.id, f.path = "s2", filepath.Join(t.TempDir(), "fork.jsonl")
	f.write(toyLine{ID: "t1", Prompt: "one"}, toyLine{ID: "t9", Prompt: "instead"})
	s := f.session()
	s.ForkedFrom, s.ForkedAfter = "s1", "t1"
	if r := f.passOf(s); r.Turns != 1 {
		t.Errorf("got %+v", r)
	}
	if got := f.texts(); got != "one instead" {
		t.Errorf("got %s", got)
	}
	if info, err := f.store.Get(context.Background(), "s2"); err != nil || info.ForkedFrom != "s1" || info.ForkedFromSave != 1 {
		t.Errorf("got %+v, %v", info, err)
	}
	f.write(toyLine{ID: "t10", Prompt: "on"})
	if r := f.passOf(s); r.Turns != 1 || f.texts() != "one instead on" {
		t.Errorf("got %+v, %s", r, f.texts())
	}
}

// The record of a fork of a fork begins with turns of both.
func TestForkOfAForkSharesBoth(t *testing.T) {
	f := newFixture(t)
	fork := func(id, from, after string, lines ...toyLine) intake.Result {
		f.id, f.path = id, filepath.Join(t.TempDir(), id+".jsonl")
		f.write(lines...)
		s := f.session()
		s.ForkedFrom, s.ForkedAfter = from, after
		return f.passOf(s)
	}
	one, two, three, four := toyLine{ID: "t1", Prompt: "one"}, toyLine{ID: "t2", Prompt: "two"}, toyLine{ID: "t3", Prompt: "three"}, toyLine{ID: "t4", Prompt: "four"}
	f.write(one, two)
	f.pass()
	fork("s2", "s1", "t2", one, two, three)
	for _, c := range []struct {
		id, after, texts, from string
		turns                  int
		lines                  []toyLine
	}{
		{"s3", "t3", "one two three four", "s2", 1, []toyLine{one, two, three, four}},
		{"s4", "t1", "one four", "s1", 1, []toyLine{one, four}}, // s2 has no save of it
		{"s5", "t9", "one two four", "", 3, []toyLine{one, two, four}},
	} {
		if r := fork(c.id, "s2", c.after, c.lines...); r.Turns != c.turns || f.texts() != c.texts {
			t.Errorf("got %+v, %s", r, f.texts())
		}
		if info, err := f.store.Get(context.Background(), c.id); err != nil || info.ForkedFrom != c.from {
			t.Errorf("%s is a fork of %q, %v", c.id, info.ForkedFrom, err)
		}
	}
}

// A fork whose origin, or the origin of that, cannot be read has all turns of its record.
func TestForkOfADamagedOrigin(t *testing.T) {
	f := newFixture(t)
	fork := func(id, from, after string, lines ...toyLine) {
		f.id, f.path = id, filepath.Join(t.TempDir(), id+".jsonl")
		f.write(lines...)
		s := f.session()
		s.ForkedFrom, s.ForkedAfter = from, after
		f.passOf(s)
	}
	one, two, three := toyLine{ID: "t1", Prompt: "one"}, toyLine{ID: "t2", Prompt: "two"}, toyLine{ID: "t3", Prompt: "three"}
	f.write(one)
	f.pass()
	fork("s2", "s1", "t1", one, two)
	if err := f.rows.Commit(t.Context(), &kv.Batch{Set: []kv.Set{{Key: keyspace.Conversation("s1"), Value: []byte("?")}}}); err != nil {
		t.Fatal(err)
	}
	fork("s3", "s2", "t2", one, two, three)
	if got := f.texts(); got != "one two three" {
		t.Errorf("got %s", got)
	}
	f.write(toyLine{ID: "t4", Prompt: "four"})
	f.pass()
	if got := f.texts(); got != "one two three four" {
		t.Errorf("got %s", got)
	}
	fork("s4", "s1", "t1", one, three)
	if got := f.texts(); got != "one three" {
		t.Errorf("got %s", got)
	}
}

// A record that its agent rewrote, shorter or not, loses nothing that was copied.
func TestRewrittenRecord(t *testing.T) {
	f := newFixture(t)
	f.write(toyLine{ID: "t1", Prompt: "one"}, toyLine{ID: "t2", Prompt: "two"}, toyLine{ID: "t3", Prompt: "three"})
	f.pass()
	before := f.source()
	if err := os.Remove(f.path); err != nil {
		t.Fatal(err)
	}
	f.write(toyLine{ID: "t3", Prompt: "three"}, toyLine{ID: "t4", Prompt: "four"})
	f.pass()
	if got := f.texts(); got != "one two three four" {
		t.Errorf("got %s", got)
	}
	f.sameSource()
	if before == f.source() {
		t.Error("the new record is not kept")
	}
}
