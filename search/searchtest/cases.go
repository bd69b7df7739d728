package searchtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/search"
	"github.com/stet-dev/stet/transcript"
)

func sample(t testing.TB, open Open) *fixture {
	t.Helper()
	f := newFixture(t, open)
	f.save(t, "one",
		Turn(t, "Please add retry to the checkout", Think("a deadline helps"), Read("checkout/pay.go", "func Pay() error"), Shell("go test ./...", "exit code 1"), Say("Retrying works now")),
		Turn(t, "日本語の検索もできますか", Say("Über die Straße")),
	)
	f.save(t, "two", Turn(t, "remove the retry again", Say("gone")))
	f.update(t)
	return f
}

func testQueries(t *testing.T, open Open) {
	f := sample(t, open)
	for _, tt := range []struct {
		query string
		want  []string
	}{
		{"checkout", []string{"one/turn-1", "one/turn-1-2"}},
		{"checkout retry", []string{"one/turn-1"}},
		{"retr", []string{"one/turn-1", "one/turn-1-4", "two/turn-1"}},
		{"retr ", nil},
		{"retr now", []string{}},
		{`"retry to the"`, []string{"one/turn-1"}},
		{`"the retry to"`, nil},
		{`"exit code"`, []string{"one/turn-1-3"}},
		{"deadline", []string{"one/turn-1-1"}},
		{"path:pay", []string{"one/turn-1-2"}},
		{"path:checkout/pay.go", []string{"one/turn-1-2"}},
		{"path:retry", nil},
		{"tool:Bash", []string{"one/turn-1-3"}},
		{"tool:shell test", []string{"one/turn-1-3"}},
		{"tool:read test", nil},
		{"retry role:user", []string{"one/turn-1", "two/turn-1"}},
		{"gone role:user", nil},
		{"検索", []string{"one/turn-2"}},
		{"語の検", []string{"one/turn-2"}},
		{"索検", nil},
		{"uber strasse", nil},
		{"uber straße", []string{"one/turn-2-1"}},
		{"title two", []string{"two/title"}},
		{"RETRY AND NOT OR NEAR(", nil},
	} {
		got := Find(t, f.index, tt.query, nil)
		slices.Sort(got)
		slices.Sort(tt.want)
		if !slices.Equal(got, tt.want) {
			t.Errorf("%q finds %q, want %q", tt.query, got, tt.want)
		}
	}
	for _, q := range []string{"", "  ", `"`, "!!! ...", "path:", `tool:"" role:`, "*"} {
		if _, err := f.index.Search(t.Context(), q, nil); !errors.Is(err, search.ErrEmptyQuery) {
			t.Errorf("%q gives %v, want ErrEmptyQuery", q, err)
		}
	}
}

func testHits(t *testing.T, open Open) {
	f := sample(t, open)
	page, err := f.index.Search(t.Context(), "retry", &search.SearchOptions{Conversation: "two"})
	Check(t, err)
	if len(page.Hits) != 1 {
		t.Fatalf("got %d hits, want 1", len(page.Hits))
	}
	h := page.Hits[0]
	if h.Title != "title of two" || h.Turn != 1 || h.Role != transcript.User || h.Kind != transcript.Text || h.Score <= 0 || h.Time.IsZero() {
		t.Errorf("hit is %+v", h)
	}
	if want := "remove the retry again"; h.Snippet.Text != want || len(h.Snippet.Matches) != 1 || want[h.Snippet.Matches[0].Start:h.Snippet.Matches[0].End] != "retry" {
		t.Errorf("snippet is %+v", h.Snippet)
	}
	far := strings.Repeat("hay ", 2000) + `then "the needle" it is, ` + strings.Repeat("hay ", 2000)
	f.save(t, "far", Turn(t, far, Read("needles/box.go", "hay")))
	f.update(t)
	page, err = f.index.Search(t.Context(), `"the needle" it`, nil)
	Check(t, err)
	got := page.Hits[0].Snippet
	var marked []string
	for _, m := range got.Matches {
		marked = append(marked, got.Text[m.Start:m.End])
	}
	if !slices.Equal(marked, []string{"the needle", "it"}) || !strings.HasPrefix(got.Text, "…hay") || !strings.HasSuffix(got.Text, "…") {
		t.Errorf("marked are %q in %q", marked, got.Text)
	}
	page, err = f.index.Search(t.Context(), "path:needles", nil)
	Check(t, err)
	if got := page.Hits[0].Snippet; got.Text != "needles/box.go" || len(got.Matches) != 1 {
		t.Errorf("the snippet of a path is %+v", got)
	}
	page, err = f.index.Search(t.Context(), "検索", nil)
	Check(t, err)
	if got := page.Hits[0].Snippet; got.Text != "日本語の検索もできますか" {
		t.Errorf("snippet is %q", got.Text)
	}
	if got := Find(t, f.index, "retry", &search.SearchOptions{Since: f.clock.Add(time.Hour)}); got != nil {
		t.Errorf("the future holds %q", got)
	}
	if got := Find(t, f.index, "gone", &search.SearchOptions{Role: transcript.Assistant, Since: f.clock.Add(-time.Hour)}); len(got) != 1 {
		t.Errorf("since an hour ago: %q", got)
	}
}

func testPages(t *testing.T, open Open) {
	f := newFixture(t, open)
	for i := range 25 {
		f.save(t, fmt.Sprint("c", i), Turn(t, "needle "+strings.Repeat("hay ", i%7)))
	}
	f.update(t)
	for _, query := range []string{"needle", "role:user"} {
		seen := make(map[string]int)
		opts := &search.SearchOptions{Limit: 4}
		for pages := 0; ; pages++ {
			page, err := f.index.Search(t.Context(), query, opts)
			Check(t, err)
			for i, h := range page.Hits {
				seen[h.Conversation]++
				if i > 0 && h.Score > page.Hits[i-1].Score {
					t.Errorf("%s: a better hit comes later", query)
				}
			}
			if page.Next == "" {
				break
			}
			opts.Cursor = page.Next
			if pages > 10 {
				t.Fatal("the pages do not end")
			}
		}
		if len(seen) != 25 {
			t.Errorf("%s: the pages hold %d conversations, want 25", query, len(seen))
		}
		for id, n := range seen {
			if n != 1 {
				t.Errorf("%s: %s is on %d pages", query, id, n)
			}
		}
	}
	for _, cursor := range []string{"x", "AAAA", "!!", strings.Repeat("A", 27)} {
		if _, err := f.index.Search(t.Context(), "needle", &search.SearchOptions{Cursor: cursor}); !errors.Is(err, search.ErrInvalidCursor) {
			t.Errorf("cursor %q gives %v, want ErrInvalidCursor", cursor, err)
		}
	}
}

func testUpdateFollowsSaves(t *testing.T, open Open) {
	ctx := t.Context()
	f := sample(t, open)
	if stats := f.update(t); stats.Conversations != 0 {
		t.Errorf("an update without changes looked at %d conversations", stats.Conversations)
	}
	c, err := f.Open(ctx, "two")
	Check(t, err)
	Add(t, c, Turn(t, "a new elephant"))
	if stats := f.update(t); stats.Conversations != 1 || stats.Messages != 1 {
		t.Errorf("one new turn: %+v", stats)
	}
	Check(t, c.AppendStep(ctx, Say("walks in")))
	Add(t, c)
	if stats := f.update(t, "two"); stats.Messages != 1 {
		t.Errorf("one new step: %+v", stats)
	}
	if got := Find(t, f.index, "elephant", nil); !slices.Equal(got, []string{"two/turn-2"}) {
		t.Errorf("elephant is in %q", got)
	}
	_, err = c.Rewind(ctx, 1, nil)
	Check(t, err)
	f.update(t)
	if got := Find(t, f.index, "elephant", nil); got != nil {
		t.Errorf("after a rewind elephant is in %q", got)
	}
	Check(t, f.SetTitle(ctx, "one", "a better giraffe"))
	f.update(t)
	if got := Find(t, f.index, "giraffe", nil); !slices.Equal(got, []string{"one/title"}) {
		t.Errorf("giraffe is in %q", got)
	}
	Check(t, f.Delete(ctx, "one", nil))
	if stats := f.update(t); stats.Removed != 1 {
		t.Errorf("a deleted conversation: %+v", stats)
	}
	if got := Find(t, f.index, "checkout", nil); got != nil {
		t.Errorf("a deleted conversation is found: %q", got)
	}
	if stats := f.update(t, "never", "one"); stats.Removed != 0 {
		t.Errorf("conversations that are not there: %+v", stats)
	}
}

func testSubagentsAndSummaries(t *testing.T, open Open) {
	ctx := t.Context()
	f := newFixture(t, open)
	inner := f.save(t, "inner", Turn(t, "look at the walrus"))
	c, err := f.Create(ctx, conversation.Info{ID: "outer"})
	Check(t, err)
	summary, err := conversation.NewItem(&agentv1.ConversationSummary{Summary: "it was about penguins"})
	Check(t, err)
	Check(t, c.SetState(ctx, &conversation.State{
		Turns: []conversation.Turn{Turn(t, "begin")}, TotalTurns: 1, Summary: summary,
		SubagentRefs: map[string]blob.ID{"sub": inner.Head().Root},
		Subagents:    map[string]conversation.Subagent{"kept": {State: &conversation.State{Turns: []conversation.Turn{Turn(t, "an octopus")}, TotalTurns: 1}}},
	}))
	Add(t, c)
	f.update(t)
	for query, want := range map[string]string{"walrus": "sub", "octopus": "kept", "penguins": ""} {
		page, err := f.index.Search(ctx, query, &search.SearchOptions{Conversation: "outer"})
		Check(t, err)
		if len(page.Hits) != 1 || page.Hits[0].Subagent != want {
			t.Errorf("%s: %+v, want one hit of subagent %q", query, page.Hits, want)
		}
	}
}

// lossy is a store that lost some blobs.
type lossy struct {
	blob.Store
	lost map[blob.ID]bool
}

func (l lossy) Get(ctx context.Context, id blob.ID) ([]byte, error) {
	if l.lost[id] {
		return nil, fmt.Errorf("blob %s: %w", id.Short(), blob.ErrNotFound)
	}
	return l.Store.Get(ctx, id)
}

func testDamagedConversations(t *testing.T, open Open) {
	f := newFixture(t, open)
	bad := Turn(t, "half", Say("is lost"))
	f.save(t, "a", Turn(t, "kept one"), bad, Turn(t, "kept two"))
	f.save(t, "b", Turn(t, "kept three"))
	c := f.save(t, "c", Turn(t, "all is lost"))
	blobs := lossy{f.blobs, map[blob.ID]bool{bad.Steps[0].ID(): true, c.Head().Root: true}}
	ix := f.openOver(t, open, blobs)
	stats, err := ix.Update(t.Context())
	Check(t, err)
	if !slices.Equal(stats.Damaged, []string{"c"}) {
		t.Errorf("damaged are %q, want c", stats.Damaged)
	}
	if got := Find(t, ix, "kept", nil); len(got) != 3 {
		t.Errorf("what is left: %q, want 3 hits", got)
	}
}

// testEverythingIsFound is a property: everything said is found, and an index that
// followed all changes equals a new one.
func testEverythingIsFound(t *testing.T, open Open) {
	f := newFixture(t, open)
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		said := make(map[string]string) // a word to the conversation that has it
		left := make(map[string]string) // the same for branches that were left
		word := func() string { return fmt.Sprintf("w%dx%d", n, len(said)) }
		for i := range rapid.IntRange(1, 3).Draw(rt, "conversations") {
			id := fmt.Sprintf("c%d-%d", n, i)
			c := f.save(t, id)
			for range rapid.IntRange(1, 5).Draw(rt, "steps") {
				switch rapid.IntRange(0, 4).Draw(rt, "kind") {
				case 0, 1, 2:
					q := word()
					said[q] = id
					a := word()
					said[a] = id
					Add(t, c, Turn(t, "ask "+q, Say("answer "+a)))
				case 3:
					if c.Head().Seq > 1 {
						for w, of := range said {
							if of == id {
								delete(said, w)
								left[w] = id
								said["gone "+w] = "" // keeps words different
							}
						}
						if _, err := c.Rewind(t.Context(), 1, nil); err != nil {
							rt.Fatal(err)
						}
					}
				case 4:
					f.update(t, id)
				}
			}
		}
		f.update(t)
		for w, id := range said {
			if id == "" {
				continue
			}
			page, err := f.index.Search(t.Context(), w, nil)
			Check(t, err)
			if !slices.ContainsFunc(page.Hits, func(h search.Hit) bool { return h.Conversation == id }) {
				rt.Fatalf("%s of %s is not found", w, id)
			}
		}
		for w, id := range left {
			page, err := f.index.Search(t.Context(), w, &search.SearchOptions{Rewound: true})
			Check(t, err)
			if !slices.ContainsFunc(page.Hits, func(h search.Hit) bool { return h.Conversation == id && h.Save > 0 }) {
				rt.Fatalf("%s of %s, which was rewound, is not found", w, id)
			}
		}
	})
	f.rebuilt(t)
}

func testHostileTexts(t *testing.T, open Open) {
	f := newFixture(t, open)
	for i, text := range []string{
		"\x1b[31mred\x1b]0;x\x07 marker", "\x01marker\x02 \x01\x01", "\u202emarker", strings.Repeat("x", 1<<20) + " marker",
		strings.Repeat("marker ", 500_000), "marker\x00end", "marker " + strings.Repeat("日", 100_000), "marker" + strings.Repeat("\u200b", 1000),
	} {
		f.save(t, fmt.Sprint("c", i), Turn(t, text, Shell(text, text)))
	}
	f.update(t)
	page, err := f.index.Search(t.Context(), "marker", &search.SearchOptions{Limit: 100, Role: transcript.User})
	Check(t, err)
	if len(page.Hits) != 8 {
		t.Errorf("found %d of 8", len(page.Hits))
	}
	for _, h := range page.Hits {
		if h.Snippet.Text != transcript.Visible(h.Snippet.Text) || len(h.Snippet.Text) > 500 || strings.Contains(h.Snippet.Text, "\n") {
			t.Errorf("snippet of %s is %.100q", h.Conversation, h.Snippet.Text)
		}
		for _, m := range h.Snippet.Matches {
			if got := h.Snippet.Text[m.Start:m.End]; !strings.EqualFold(got, "marker") {
				t.Errorf("%s: the match is %.50q", h.Conversation, got)
			}
		}
	}
}

func testContextAndClose(t *testing.T, open Open) {
	f := sample(t, open)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, updateErr := f.index.Update(ctx)
	_, rebuildErr := f.index.Rebuild(ctx)
	_, searchErr := f.index.Search(ctx, "retry", nil)
	for _, err := range []error{updateErr, rebuildErr, searchErr} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("a dead context gives %v", err)
		}
	}
	if got := Find(t, f.index, "checkout", nil); len(got) != 2 {
		t.Errorf("afterwards: %q", got)
	}
	Check(t, f.index.Close())
	_, updateErr = f.index.Update(t.Context())
	_, searchErr = f.index.Search(t.Context(), "retry", nil)
	for _, err := range []error{updateErr, searchErr} {
		if !errors.Is(err, search.ErrClosed) {
			t.Errorf("a closed index gives %v", err)
		}
	}
}
