package corpus

import (
	"strings"
	"unicode/utf8"
)

// Snippet is a piece of text with the places that match.
type Snippet struct {
	Text string
	// Matches are in order and do not overlap.
	Matches []Match
}

// Match is the bytes [Start, End) of a snippet's text.
type Match struct{ Start, End int }

// Marks around matches and cuts. Indexed text has no control characters, so they
// cannot be forged.
const (
	MarkStart = '\x01'
	MarkEnd   = '\x02'
	MarkCut   = '\x03'
)

// A snippet is cut twice: first roughly, from text that can be megabytes, then to
// the size that is shown.
const (
	RoughBefore, RoughAfter = 600, 3000
	shownBefore, shownAfter = 80, 240
)

// ParseSnippet makes a snippet of marked text.
func ParseSnippet(marked string) Snippet {
	const cutMark = string(MarkCut)
	text, before := strings.CutPrefix(marked, cutMark)
	text, after := strings.CutSuffix(text, cutMark)
	return unmark(text).shorten(before, after)
}

// RuneAt returns the start of the character at i, within s.
func RuneAt(s string, i int) int {
	i = min(max(i, 0), len(s))
	for i > 0 && i < len(s) && !utf8.RuneStart(s[i]) {
		i--
	}
	return i
}

// unmark removes the marks from text and joins its lines.
func unmark(marked string) Snippet {
	var s Snippet
	var b strings.Builder
	start := -1
	end := func() {
		if start >= 0 && b.Len() > start {
			s.Matches = append(s.Matches, Match{start, b.Len()})
		}
		start = -1
	}
	for _, r := range marked {
		switch r {
		case MarkStart:
			start = b.Len()
		case MarkEnd:
			end()
		case Joint:
		case '\n', '\t':
			b.WriteByte(' ')
		default:
			b.WriteRune(r)
		}
	}
	end() // a cut match
	s.Text = b.String()
	return s
}

// shorten keeps the shown text around the first match. The arguments tell whether
// text was cut before.
func (s Snippet) shorten(before, after bool) Snippet {
	first := 0
	if len(s.Matches) > 0 {
		first = s.Matches[0].Start
	}
	from, to := RuneAt(s.Text, first-shownBefore), RuneAt(s.Text, first+shownAfter)
	if space := strings.IndexByte(s.Text[from:first], ' '); from > 0 && space >= 0 {
		from += space + 1 // at the start of a word
	}
	var out Snippet
	if before || from > 0 {
		out.Text = "…"
	}
	shift := len(out.Text) - from
	out.Text += s.Text[from:to]
	for i, m := range s.Matches {
		if m.End <= to || i == 0 { // only the first can be longer than the shown text
			out.Matches = append(out.Matches, Match{m.Start + shift, min(m.End, to) + shift})
		}
	}
	if after || to < len(s.Text) {
		out.Text += "…"
	}
	return out
}
