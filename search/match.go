package search

import (
	"strings"

	"github.com/stet-dev/stet/search/internal/corpus"
)

// query is a parsed query.
type query struct{ corpus.Query }

func parseQuery(text string) query { return query{corpus.ParseQuery(text)} }

// match formats the terms for FTS5. Every term is a string of that language, in which
// only the quote is special.
func (q query) match() string {
	var b strings.Builder
	for i, t := range q.Terms {
		if i > 0 {
			b.WriteString(" AND ")
		}
		if t.Path {
			b.WriteString("path : ")
		}
		text := strings.ReplaceAll(corpus.Indexed(t.Text), "\x00", " ")
		b.WriteString(`"` + strings.ReplaceAll(text, `"`, `""`) + `"`)
		if t.Prefix {
			b.WriteString(" *")
		}
	}
	return b.String()
}

// Snippet is a piece of text with the places that match.
type Snippet struct {
	Text string
	// Matches are in order and do not overlap.
	Matches []Match
}

// Match is the bytes [Start, End) of a snippet's text.
type Match struct {
	Start int `json:"start"`
	End   int `json:"end"`
}

// newSnippet makes a snippet of text with marks.
func newSnippet(marked string) Snippet {
	cut := corpus.ParseSnippet(marked)
	s := Snippet{Text: cut.Text}
	for _, m := range cut.Matches {
		s.Matches = append(s.Matches, Match(m))
	}
	return s
}
