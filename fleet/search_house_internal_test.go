package fleet

import (
	"context"
	"testing"

	"github.com/stet-dev/stet/conversation"
)

func TestOneNodeAtATimeKeepsTheSearchIndex(t *testing.T) {
	a, b := twoNodes(t)
	ctx := t.Context()
	db, err := a.Open(ctx, "shop")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Conversations().Create(ctx, conversation.Info{ID: "c1", Title: "add retry"}); err != nil {
		t.Fatal(err)
	}
	waiting := func(want int) {
		t.Helper()
		if names, err := b.searchWaiting(ctx); err != nil || len(names) != want {
			t.Errorf("tenants that wait: %q, %v; want %d", names, err, want)
		}
	}
	search := func() (found TaskState) {
		t.Helper()
		states, err := b.House(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range states {
			if s.Name == searchTask {
				found = s
			}
		}
		return found
	}
	mustHold(t, a.Lease("house:"+searchTask), true, func(ctx context.Context) error {
		if err := b.keepSearch(ctx, 0); err != nil { // leaves it to the other node
			return err
		}
		waiting(1)
		return a.runSearch(ctx, 0)
	})
	waiting(0)
	if s := search(); s.Node != "a" || s.Done != 1 || s.Succeeded.IsZero() || s.Error != "" || s.Running != "" {
		t.Errorf("state %+v, want one conversation indexed by a", s)
	}
	if err := b.keepSearch(ctx, 0); err != nil { // nothing to do: it writes nothing
		t.Fatal(err)
	}
	if s := search(); s.Node != "a" {
		t.Errorf("state %+v was written by %s, which had nothing to do", s, s.Node)
	}
	if err := db.Conversations().SetTitle(ctx, "c1", "add a timeout"); err != nil {
		t.Fatal(err)
	}
	if err := b.keepSearch(ctx, 0); err != nil {
		t.Fatal(err)
	}
	waiting(0)
	if s := search(); s.Node != "b" || s.Done != 1 {
		t.Errorf("state %+v, want one conversation indexed by b", s)
	}
}
