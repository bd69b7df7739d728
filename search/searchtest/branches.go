package searchtest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/search"
)

// places returns the hits of a query as "conversation/turn@save".
func places(t testing.TB, ix search.Searcher, query string, rewound bool) []string {
	t.Helper()
	page, err := ix.Search(t.Context(), query, &search.SearchOptions{Rewound: rewound})
	Check(t, err)
	var out []string
	for _, h := range page.Hits {
		out = append(out, fmt.Sprintf("%s/%d@%d", h.Conversation, h.Turn, h.Save))
	}
	return out
}

func (f *fixture) expect(t testing.TB, query string, want ...string) {
	t.Helper()
	if got := places(t, f.index, query, true); !slices.Equal(got, want) {
		t.Errorf("%s is in %q, want %q", query, got, want)
	}
	current := slices.DeleteFunc(slices.Clone(want), func(p string) bool { return p[len(p)-2:] != "@0" })
	if got := places(t, f.index, query, false); !slices.Equal(got, current) {
		t.Errorf("%s is in %q of the current states, want %q", query, got, current)
	}
}

func testRewoundBranchesAreFound(t *testing.T, open Open) {
	ctx := t.Context()
	f := newFixture(t, open)
	c := f.save(t, "c", Turn(t, "alligator"))       // save 1
	Add(t, c, Turn(t, "badger", Say("first sett"))) // 2
	Check(t, c.AppendStep(ctx, Say("second sett")))
	Add(t, c)                       // 3
	Add(t, c, Turn(t, "chameleon")) // 4
	f.update(t)
	f.expect(t, "chameleon", "c/3@0")

	_, err := c.Rewind(ctx, 1, nil) // 5
	Check(t, err)
	f.update(t)
	f.expect(t, "alligator", "c/1@0")
	f.expect(t, "badger", "c/2@4")
	f.expect(t, "sett", "c/2@4", "c/2@4")
	f.expect(t, "chameleon", "c/3@4")

	// The same words in the current state come first.
	Add(t, c, Turn(t, "dingo and chameleon")) // 6
	stats := f.update(t)
	if stats.Messages != 1 {
		t.Errorf("one new turn beside a branch: %+v", stats)
	}
	f.expect(t, "chameleon", "c/2@0", "c/3@4")

	// In the middle of the turn that the first branch finished.
	_, err = c.Rewind(ctx, 2, nil) // 7
	Check(t, err)
	f.update(t)
	f.expect(t, "badger", "c/2@0")
	f.expect(t, "first", "c/2@0")
	f.expect(t, "second", "c/2@4")
	f.expect(t, "dingo", "c/2@6")

	// Back at the end of the first branch nothing of it is rewound.
	_, err = c.Rewind(ctx, 4, nil) // 8
	Check(t, err)
	f.update(t)
	f.expect(t, "second", "c/2@0")
	f.expect(t, "chameleon", "c/3@0", "c/2@6")
	f.expect(t, "dingo", "c/2@6")

	f.rebuilt(t)
}

// A policy removes the saves of a branch without touching other rows.
func testABranchThatIsRemovedIsNotFound(t *testing.T, open Open) {
	ctx := t.Context()
	f := newFixture(t, open)
	c := f.save(t, "c", Turn(t, "alligator"))
	Add(t, c, Turn(t, "badger"))
	_, err := c.Rewind(ctx, 1, nil)
	Check(t, err)
	f.update(t)
	f.expect(t, "badger", "c/2@2")
	saves, err := f.Retainable(ctx, nil)
	Check(t, err)
	_, err = f.ApplyRetention(ctx, conversation.PlanRetention(saves, conversation.Policy{MaxSaves: 1}, time.Now()))
	Check(t, err)
	if stats := f.update(t); stats.Conversations != 1 {
		t.Errorf("a removed branch: %+v", stats)
	}
	f.expect(t, "badger")
	f.expect(t, "alligator", "c/1@0")
	if stats := f.update(t); stats.Conversations != 0 {
		t.Errorf("the next update looked at %+v", stats)
	}
}

func testALostBranchCostsNothingElse(t *testing.T, open Open) {
	ctx := t.Context()
	f := newFixture(t, open)
	c := f.save(t, "c", Turn(t, "alligator"))
	Add(t, c, Turn(t, "badger"))
	lost := c.Head().Root
	_, err := c.Rewind(ctx, 1, nil)
	Check(t, err)
	Add(t, c, Turn(t, "chameleon"))
	f.index = f.openOver(t, open, &missing{Store: f.blobs, id: lost})
	if stats := f.update(t); !slices.Equal(stats.Damaged, []string{"c"}) {
		t.Errorf("a lost branch: %+v", stats)
	}
	f.expect(t, "chameleon", "c/2@0")
	f.expect(t, "badger")
}
