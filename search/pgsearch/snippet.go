package pgsearch

import (
	"iter"
	"slices"
	"strings"

	"github.com/stet-dev/stet/search"
	"github.com/stet-dev/stet/search/internal/corpus"
)

// maxMarked is how many matches of each phrase are marked.
const maxMarked = 64

// span is the bytes [from, to) of a text that match.
type span struct{ from, to int }

// spans finds a phrase in a text.
func (p phrase) spans(text string) iter.Seq[span] {
	return func(yield func(span) bool) {
		window := make([]token, 0, len(p.words)) // the latest words
		for t := range tokens(text) {
			if len(window) == len(p.words) {
				window = slices.Delete(window, 0, 1)
			}
			window = append(window, t)
			if p.fits(window) && !yield(span{window[0].start, t.end}) {
				return
			}
		}
	}
}

func (p phrase) fits(window []token) bool {
	if len(window) < len(p.words) {
		return false
	}
	for i, word := range p.words {
		last := i == len(p.words)-1
		if window[i].word != word && !(last && p.prefix && strings.HasPrefix(window[i].word, word)) {
			return false
		}
	}
	return true
}

// snippet returns the shown text of a hit: around the first match in the body or, if
// there is none, in the path.
func (q query) snippet(body, path string) search.Snippet {
	if q.listing() {
		return newSnippet(body[:corpus.RuneAt(body, 1000)])
	}
	for i, text := range []string{body, path} {
		var found []span
		for _, p := range q.phrases {
			if p.path && i == 0 {
				continue
			}
			found = append(found, p.some(text)...)
		}
		if len(found) > 0 {
			return newSnippet(mark(text, found))
		}
	}
	return search.Snippet{}
}

// some returns the first matches that fit into one snippet.
func (p phrase) some(text string) []span {
	var found []span
	for s := range p.spans(text) {
		if len(found) == maxMarked || len(found) > 0 && s.from > found[0].from+corpus.RoughAfter {
			break
		}
		found = append(found, s)
	}
	return found
}

// mark cuts a text around the first match and marks the matches.
func mark(text string, spans []span) string {
	slices.SortFunc(spans, func(a, b span) int { return a.from - b.from })
	from, to := corpus.RuneAt(text, spans[0].from-corpus.RoughBefore), corpus.RuneAt(text, spans[0].from+corpus.RoughAfter)
	var b strings.Builder
	if from > 0 {
		b.WriteRune(corpus.MarkCut)
	}
	at := from
	for _, s := range spans {
		if s.from < at || s.from >= to {
			continue // inside the previous match, or not shown
		}
		b.WriteString(text[at:s.from])
		b.WriteRune(corpus.MarkStart)
		at = min(s.to, to)
		b.WriteString(text[s.from:at])
		b.WriteRune(corpus.MarkEnd)
	}
	b.WriteString(text[at:to])
	if to < len(text) {
		b.WriteRune(corpus.MarkCut)
	}
	return b.String()
}

func newSnippet(marked string) search.Snippet {
	cut := corpus.ParseSnippet(marked)
	s := search.Snippet{Text: cut.Text}
	for _, m := range cut.Matches {
		s.Matches = append(s.Matches, search.Match(m))
	}
	return s
}
