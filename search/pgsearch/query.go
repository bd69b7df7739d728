package pgsearch

import (
	"fmt"
	"strings"

	"github.com/stet-dev/stet/search/internal/corpus"
)

// query is a parsed query, split into words.
type query struct {
	corpus.Query
	phrases []phrase
}

// phrase is a sequence of words.
type phrase struct {
	words  []string
	prefix bool // the last word may be the beginning of one
	path   bool // matches only paths
}

func parseQuery(text string) query {
	q := query{Query: corpus.ParseQuery(text)}
	for _, t := range q.Terms {
		p := phrase{prefix: t.Prefix, path: t.Path}
		for token := range tokens(corpus.Indexed(t.Text)) {
			p.words = append(p.words, token.word)
		}
		if len(p.words) > 0 {
			q.phrases = append(q.phrases, p)
		}
	}
	return q
}

// listing reports whether there are filters only.
func (q query) listing() bool { return len(q.Terms) == 0 }

// lost reports whether the query has terms, but none with indexable words.
func (q query) lost() bool { return !q.listing() && len(q.phrases) == 0 }

// text spells the query, the same for queries with the same meaning.
func (q query) text() string {
	var b strings.Builder
	for _, p := range q.phrases {
		fmt.Fprintf(&b, "%q %v %v;", p.words, p.prefix, p.path)
	}
	return b.String()
}

// holds reports whether a text has all phrases.
func (q query) holds(body, path string) bool {
	for _, p := range q.phrases {
		if !p.in(path) && (p.path || !p.in(body)) {
			return false
		}
	}
	return true
}

func (p phrase) in(text string) bool {
	for range p.spans(text) {
		return true
	}
	return false
}
