package conversation_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

func TestFindByPrefix(t *testing.T) {
	ctx := context.Background()
	f := newFixture(t)
	for _, id := range []string{"longname-a", "longname-b", "other"} {
		must(f.Create(ctx, conversation.Info{ID: id}))
	}
	check(t, f.rows.Commit(ctx, &kv.Batch{Set: []kv.Set{{Key: keyspace.Conversation("damaged"), Value: []byte("\xff")}}}))
	for name, want := range map[string]string{"longname-a": "longname-a", "oth": "other", "OTHER": "other", "dam": "damaged"} {
		if got, err := f.Find(ctx, name); err != nil || got != want {
			t.Errorf("find %q: %q, %v", name, got, err)
		}
	}
	var several *conversation.AmbiguousError
	if _, err := f.Find(ctx, "longname"); !errors.As(err, &several) || len(several.Candidates) != 2 {
		t.Errorf("got %v", err)
	}
	for _, name := range []string{"", "none"} {
		if _, err := f.Find(ctx, name); !errors.Is(err, conversation.ErrNotFound) {
			t.Errorf("find %q: %v", name, err)
		}
	}
	// One that is asked for is told from those that are not.
	short := must(f.ShortIDs(ctx, "longname-b"))
	if short["longname-b"] != "longname-b" {
		t.Errorf("got %v", short)
	}
	if ids := must(f.IDs(ctx, "l", 1)); len(ids) != 1 || ids[0] != "longname-a" {
		t.Errorf("got %v", ids)
	}
	if n := must(f.Count(ctx)); n != 4 {
		t.Errorf("%d conversations", n)
	}
}

func TestExistsAndRemains(t *testing.T) {
	ctx := context.Background()
	f := newFixture(t)
	c := must(f.Create(ctx, conversation.Info{ID: "c"}))
	f.grow(t, c, "one")
	must(f.Create(ctx, conversation.Info{ID: "cc"}))
	expect := func(id string, exists, remains bool) {
		t.Helper()
		if got := must(f.Exists(ctx, id)); got != exists {
			t.Errorf("%s exists: %v", id, got)
		}
		if got := must(f.Remains(ctx, id)); got != remains {
			t.Errorf("something of %s remains: %v", id, got)
		}
	}
	expect("c", true, true)
	expect("cc", true, true)
	expect("ccc", false, false)
	check(t, f.rows.Commit(ctx, &kv.Batch{Delete: []string{keyspace.Conversation("c")}}))
	expect("c", false, true)
	check(t, f.Delete(ctx, "c", nil))
	expect("c", false, false)
	check(t, f.rows.Commit(ctx, &kv.Batch{Set: []kv.Set{{Key: keyspace.Conversation("cc"), Value: []byte("\xff")}}}))
	expect("cc", true, true)
}
