package pgsearch_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stet-dev/stet/search"
)

// words are what random texts are made of: with case, diacritics, scripts without
// spaces, words with signs in them, and beginnings of each other.
var words = []string{
	"retry", "Retry", "retries", "checkout", "check", "pay.go", "checkout/pay.go", "Über", "uber", "Straße", "naïve", "naive", "don't", "don", "t",
	"検索", "検", "日本語", "func_name", "func", "x1", "x", "1", "exit-code", "exit", "code", "ΑΒΓ", "αβγ", "Ёлка", "елка", "a", "go", "https://host:80/p?q=1", "-", "...",
}

// TestSameHitsAsTheEmbeddedIndex asks both for random words and phrases.
func TestSameHitsAsTheEmbeddedIndex(t *testing.T) {
	db, s := openDB(t, newDatabase(t)), newStore()
	source := rand.New(rand.NewPCG(1, 2))
	for i := range 30 {
		var texts []string
		for range 4 {
			var text []string
			for range 1 + source.IntN(12) {
				text = append(text, words[source.IntN(len(words))])
			}
			texts = append(texts, strings.Join(text, " "))
		}
		s.say(t, fmt.Sprint("c", i), texts...)
	}
	embedded, err := search.Open(t.Context(), s.Store, s.blobs, s.rows, nil)
	check(t, err)
	defer embedded.Close()
	shared := s.index(t, db, "tenant")
	update(t, embedded)
	update(t, shared)
	text := func(t *rapid.T, name string, most int) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom(words), 1, most).Draw(t, name), " ")
	}
	rapid.Check(t, func(rt *rapid.T) {
		query := text(rt, "query", 3)
		switch rapid.IntRange(0, 3).Draw(rt, "form") {
		case 0:
			query = `"` + query + `"`
		case 1:
			query = `"` + query + `" ` + text(rt, "word", 1)
		}
		opts := &search.SearchOptions{Limit: 1000}
		page, embeddedErr := embedded.Search(t.Context(), query, opts)
		other, sharedErr := shared.Search(t.Context(), query, opts)
		if (embeddedErr == nil) != (sharedErr == nil) {
			rt.Fatalf("%q: the embedded index gives %v, the shared one %v", query, embeddedErr, sharedErr)
		}
		if got, want := spots(other), spots(page); !slices.Equal(got, want) {
			rt.Fatalf("%q finds\n%q, want\n%q", query, got, want)
		}
	})
}

// spots are the hits with what is shown of them, sorted.
func spots(p search.Page) []string {
	var out []string
	for _, h := range p.Hits {
		out = append(out, fmt.Sprintf("%s/%s %q %v", h.Conversation, h.MessageID, h.Snippet.Text, h.Snippet.Matches))
	}
	slices.Sort(out)
	return out
}

// TestLongTexts has messages of which the database does not keep the places of all
// words.
func TestLongTexts(t *testing.T) {
	db, s := openDB(t, newDatabase(t)), newStore()
	var many, different strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&many, "hay%d ", i%700)
		fmt.Fprintf(&different, "%064x ", i)
	}
	for i := range 3 {
		s.say(t, fmt.Sprint("many", i), many.String()+"then the needle was found", many.String()+"the found needle was then")
	}
	s.say(t, "often", strings.Repeat("needle hay ", 400)+"needle found")
	s.say(t, "different", "begin "+different.String()+" needle found")
	s.say(t, "long", strings.Repeat("x", 100_000)+" needle", strings.Repeat("日", 100_000))
	ix := s.index(t, db, "tenant")
	update(t, ix)
	for query, want := range map[string]int{
		"needle then": 6, `"the needle was"`: 3, `"needle was then"`: 3, `"needle was" hay1`: 6, `"needle then"`: 0,
		`"hay needle found"`: 1, "begin 0000": 1, `"` + fmt.Sprintf("%064x %064x", 3, 4) + `"`: 1,
		strings.Repeat("x", 100_000): 1, "日日日": 1,
	} {
		seen := make(map[string]bool)
		opts := &search.SearchOptions{Limit: 2}
		for {
			page, err := ix.Search(t.Context(), query, opts)
			check(t, err)
			for _, h := range page.Hits {
				seen[h.Conversation+h.MessageID] = true
				if len(h.Snippet.Matches) == 0 {
					t.Errorf("%.40q: nothing is marked in %.40q", query, h.Snippet.Text)
				}
			}
			if page.Next == "" {
				break
			}
			if len(page.Hits) != 2 {
				t.Errorf("%.40q: a page before the last has %d hits, want 2", query, len(page.Hits))
			}
			opts.Cursor = page.Next
		}
		if len(seen) != want {
			t.Errorf("%.40q is in %d messages, want %d", query, len(seen), want)
		}
	}
}
