package corpus

import (
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/stet-dev/stet/transcript"
)

// maxBody is how much of the output of a tool is indexed, and maxText how much of
// anything else.
const (
	maxBody = 64 << 10
	maxText = 4 << 20
)

// Joint separates words where a script has no spaces. It is invisible, not a letter,
// and removed from shown text.
const Joint = '\u200b'

// Indexed returns text in indexed form: without control characters, and with every
// character of a script that has no spaces as a word.
func Indexed(s string) string {
	s = transcript.Visible(s)
	if strings.IndexFunc(s, func(r rune) bool { return r == Joint || spaceless(r) }) < 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) * 2)
	before := false
	for _, r := range s {
		if r == Joint {
			continue
		}
		now := spaceless(r)
		if now || before {
			b.WriteRune(Joint)
		}
		b.WriteRune(r)
		before = now
	}
	return b.String()
}

func spaceless(r rune) bool {
	return r >= 0x0e00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// Cut shortens text to at most n bytes at the start of a character.
func Cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xc0 == 0x80 {
		n--
	}
	return s[:n]
}

// bodyOf returns the searchable text of a message.
func bodyOf(m transcript.Message) string {
	switch {
	case m.Simulated:
		return Cut(m.Words()+"\n"+transcript.Untagged(m.Text), maxText)
	case m.Tool == nil:
		return Cut(m.Text, maxText)
	}
	var b strings.Builder
	b.WriteString(Cut(m.Text, maxText))
	if m.Kind != transcript.Shell { // the input of a Shell message is its text
		leaves(&b, m.Tool.Input)
	}
	for _, s := range []string{m.Tool.Output, m.Tool.Diff} {
		if s != "" {
			b.WriteString("\n" + Cut(s, maxBody))
		}
	}
	return strings.TrimPrefix(b.String(), "\n")
}

// leaves writes the texts in a value of JSON.
func leaves(b *strings.Builder, v any) {
	switch v := v.(type) {
	case string:
		b.WriteString("\n" + Cut(v, maxBody))
	case []any:
		for _, e := range v {
			leaves(b, e)
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			leaves(b, v[k])
		}
	}
}

// weightOf is the weight of a match in a message: conversation ranks before tool
// output.
func weightOf(m transcript.Message) float64 {
	switch m.Kind {
	case TitleKind:
		return 2
	case transcript.Text, transcript.Summary:
		return 1.5
	case transcript.ToolCall:
		return 0.75
	}
	return 1
}

// TitleKind is the kind of the message that the index creates for a title.
const TitleKind transcript.Kind = "title"
