package search

import (
	"errors"
	"slices"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/ext/fts5"

	"github.com/stet-dev/stet/search/internal/corpus"
)

// register adds full-text search to a connection, and a function excerpt, which
// returns the text around the first match with marks.
//
// FTS5 has snippet and highlight for that, but the time of both grows with the
// square of the number of matches in a message: on a busy machine 20,000 took 34 s
// in the one, 100,000 took 8 s in the other. Here it is bounded by maxMarked.
func register(c *sqlite3.Conn) error {
	return fts5.RegisterCustom(c, func(api *fts5.API) error {
		return api.CreateFunction("excerpt", func(fts fts5.Context, ctx sqlite3.Context, _ ...sqlite3.Value) {
			s, err := excerpt(fts)
			if err != nil {
				ctx.ResultError(err)
				return
			}
			ctx.ResultText(s)
		})
	})
}

// maxMarked is how many matches of each term are examined.
const maxMarked = 64

// span is a match: tokens [first, end) of a column, then their bytes.
type span struct {
	first, end int
	from, to   int
}

func excerpt(fts fts5.Context) (string, error) {
	spans := make([][]span, fts.ColumnCount())
	for phrase := range fts.PhraseCount() {
		places, err := fts.PhraseIter(phrase)
		if err != nil {
			return "", err
		}
		size, n := fts.PhraseSize(phrase), make([]int, len(spans))
		for col, off := range places {
			if n[col] < maxMarked {
				spans[col] = append(spans[col], span{first: off, end: off + size})
			}
			// Places come column by column, so the last column ends the search.
			if n[col]++; n[col] >= maxMarked && col == len(spans)-1 {
				break
			}
		}
	}
	for col, found := range spans {
		if len(found) > 0 {
			return mark(fts, col, found)
		}
	}
	return "", nil
}

// mark cuts the text of a column around the first match and marks the matches.
func mark(fts fts5.Context, col int, spans []span) (string, error) {
	text, err := fts.ColumnText(col)
	if err != nil {
		return "", err
	}
	slices.SortFunc(spans, func(a, b span) int { return a.first - b.first })
	if spans, err = locate(fts, text, spans); err != nil || len(spans) == 0 {
		return "", err
	}
	from, to := corpus.RuneAt(text, spans[0].from-corpus.RoughBefore), corpus.RuneAt(text, spans[0].from+corpus.RoughAfter)
	var b []byte
	if from > 0 {
		b = append(b, corpus.MarkCut)
	}
	at := from
	for _, s := range spans {
		if s.from < at || s.from >= to {
			continue // inside the previous match, or not shown
		}
		b = append(append(b, text[at:s.from]...), corpus.MarkStart)
		at = min(s.to, to)
		b = append(append(b, text[s.from:at]...), corpus.MarkEnd)
	}
	b = append(b, text[at:to]...)
	if to < len(text) {
		b = append(b, corpus.MarkCut)
	}
	return string(b), nil
}

// errFar ends the reading of tokens.
var errFar = errors.New("far enough")

// locate finds the bytes of tokens. It stops at the end of the shown text.
func locate(fts fts5.Context, text string, spans []span) ([]span, error) {
	token, begun, far := 0, -1, false
	err := fts.Tokenize(text, "", func(flags fts5.TokenFlag, _ string, start, end int) error {
		if flags&fts5.TOKEN_COLOCATED != 0 {
			return nil
		}
		if begun >= 0 && start > begun+corpus.RoughAfter {
			far = true
			return errFar
		}
		for i := range spans {
			s := &spans[i]
			if s.first > token {
				break // they are sorted
			}
			if s.first == token {
				s.from = start
				if begun < 0 {
					begun = start
				}
			}
			if token < s.end {
				s.to = end
			}
		}
		token++
		return nil
	})
	if err != nil && !far {
		return nil, err
	}
	return slices.DeleteFunc(spans, func(s span) bool { return s.to == 0 }), nil
}
