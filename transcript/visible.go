package transcript

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Visible makes text safe to show: control characters, which could control a
// terminal, and direction marks, which could disguise a line, become visible symbols;
// colours are dropped; broken UTF-8 becomes U+FFFD. New lines and tabs stay.
func Visible(s string) string {
	if clean(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); {
		if n := colour(s[i:]); n > 0 {
			i += n
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == '\r' && strings.HasPrefix(s[i+1:], "\n"):
		case r == '\r':
			b.WriteByte('\n') // progress bars return to the start of their line
		case !hidden(r):
			b.WriteRune(r) // U+FFFD for a broken byte
		case r < ' ':
			b.WriteRune('\u2400' + r)
		case r == 0x7f:
			b.WriteRune('\u2421')
		default:
			fmt.Fprintf(&b, "⟨U+%04X⟩", r)
		}
		i += n
	}
	return b.String()
}

// clean reports whether Visible would change nothing.
func clean(s string) bool {
	return utf8.ValidString(s) && strings.IndexFunc(s, hidden) < 0
}

// hidden reports whether a character must be made visible. The joiners U+200C and
// U+200D stay: scripts and emoji need them, and they do not hide text.
func hidden(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case unicode.IsControl(r):
		return true
	case r == 0x061c, r == 0x200e, r == 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
		return true // directions
	case r == 0x2028, r == 0x2029, r == 0xfeff, r >= 0xfff9 && r <= 0xfffb, r >= 0xe0000 && r <= 0xe007f:
		return true // separators, annotations, invisible tags
	}
	return false
}

// colour returns the length of a colour sequence at the start of s, or 0.
func colour(s string) int {
	if !strings.HasPrefix(s, "\x1b[") {
		return 0
	}
	for i := 2; i < len(s) && i < 40; i++ {
		switch c := s[i]; {
		case c == 'm':
			return i + 1
		case c != ';' && c != ':' && (c < '0' || c > '9'):
			return 0
		}
	}
	return 0
}

// oneLine is Visible for names and titles.
func oneLine(s string) string {
	return strings.NewReplacer("\n", "␊", "\t", " ").Replace(Visible(s))
}
