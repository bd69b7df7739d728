package search

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stet-dev/stet/search/internal/corpus"
)

// FuzzParseQuery holds every input to what makes it safe to hand to FTS5: only
// quoted strings, joined by AND, each perhaps of paths and perhaps a prefix. It
// needs no database, which makes it a thousand times as fast as FuzzQuery.
func FuzzParseQuery(f *testing.F) {
	for _, q := range []string{
		"retry", `"a phrase`, `""`, `path:"a b" tool:x role:user`, "a AND b OR NOT c", "NEAR(a b, 3)", "^a", "a*", "a\x00b", "\xff\xfe", "日本", "path:path:path:", "a\"b\"c", "\u0345",
	} {
		f.Add(q)
	}
	f.Fuzz(func(t *testing.T, text string) {
		q := parseQuery(text)
		if n := len(q.Terms) + len(q.Tools) + len(q.Roles); n > corpus.MaxTerms || q.Empty() != (n == 0) {
			t.Errorf("%q: %d terms", text, n)
		}
		match := q.match()
		if !utf8.ValidString(match) || strings.IndexByte(match, 0) >= 0 {
			t.Errorf("%q becomes %q, which is no text", text, match)
		}
		rest := match
		for i := range q.Terms {
			var ok bool
			if rest, ok = quoted(rest, i > 0); !ok {
				t.Fatalf("%q becomes %q, which is no list of strings", text, match)
			}
		}
		if rest != "" {
			t.Errorf("%q becomes %q, of which %q is left", text, match, rest)
		}
	})
}

// quoted takes one term from the front of an expression.
func quoted(s string, further bool) (rest string, ok bool) {
	if further {
		if s, ok = strings.CutPrefix(s, " AND "); !ok {
			return s, false
		}
	}
	s = strings.TrimPrefix(s, "path : ")
	if s, ok = strings.CutPrefix(s, `"`); !ok {
		return s, false
	}
	for {
		end := strings.IndexByte(s, '"')
		if end < 0 {
			return s, false
		}
		s = s[end+1:]
		if !strings.HasPrefix(s, `"`) { // two are one that is meant
			return strings.TrimPrefix(s, " *"), true
		}
		s = s[1:]
	}
}

// FuzzSnippet holds what is cut out of a text to what is promised: the matches
// lie in it, in order.
func FuzzSnippet(f *testing.F) {
	f.Add("plain")
	f.Add("\x01a\x02 b")
	f.Add("\x02\x01\x01\xff")
	f.Fuzz(func(t *testing.T, text string) {
		s := newSnippet(text)
		at := 0
		for _, m := range s.Matches {
			if m.Start < at || m.End <= m.Start || m.End > len(s.Text) {
				t.Fatalf("%q: match %v in %q", text, m, s.Text)
			}
			at = m.End
		}
	})
}
