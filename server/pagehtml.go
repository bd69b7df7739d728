package server

import (
	"html"
	"strings"

	"github.com/alecthomas/chroma/v2"

	"github.com/stet-dev/stet/internal/highlight"
	"github.com/stet-dev/stet/transcript"
)

// maxHighlighted bounds the text whose words get colours; the rest is as good to
// read without.
const maxHighlighted = 256 << 10

// highlighted returns the lines of a text as HTML: escaped, with classes where the
// name of the file, or of the language, tells what the text is. It is nil where
// there is nothing to add to the escaped text.
func highlighted(name, text string) []string {
	if len(text) > maxHighlighted || text == "" {
		return nil
	}
	lexer := highlight.Lexer(name)
	if lexer == nil {
		return nil
	}
	tokens, err := chroma.Coalesce(lexer).Tokenise(&chroma.TokeniseOptions{State: "root", EnsureLF: false}, text)
	if err != nil {
		return nil
	}
	var lines []string
	var line strings.Builder
	for token := tokens(); token != chroma.EOF; token = tokens() {
		class := tokenClass(token.Type)
		for i, part := range strings.Split(token.Value, "\n") {
			if i > 0 {
				lines = append(lines, line.String())
				line.Reset()
			}
			writeToken(&line, class, part)
		}
	}
	return append(lines, line.String())
}

func writeToken(b *strings.Builder, class, text string) {
	if text == "" {
		return
	}
	if class == "" {
		b.WriteString(html.EscapeString(text))
		return
	}
	b.WriteString(`<span class="` + class + `">` + html.EscapeString(text) + `</span>`)
}

// tokenClass reduces the many kinds of tokens to those that the page colours.
func tokenClass(t chroma.TokenType) string {
	switch {
	case t.InCategory(chroma.Comment):
		return "c"
	case t.InCategory(chroma.Keyword):
		return "k"
	case t.InSubCategory(chroma.String):
		return "s"
	case t.InSubCategory(chroma.Number):
		return "m"
	case t == chroma.NameFunction || t == chroma.NameClass || t == chroma.NameTag || t == chroma.GenericHeading || t == chroma.GenericSubheading:
		return "nf"
	case t == chroma.NameBuiltin || t == chroma.NameAttribute || t == chroma.NameDecorator:
		return "nb"
	}
	return ""
}

// highlightCode is a transcript.Highlighter.
func highlightCode(language, code string) string {
	return strings.Join(highlighted(language, code), "\n")
}

// shades holds the highlighted lines of both sides of a diff.
type shades struct{ before, after []string }

func newShades(path string, before, after []byte) shades {
	return shades{highlighted(path, valid(string(before))), highlighted(path, valid(string(after)))}
}

// line returns a line of a diff as HTML: number n, from 0, of one side.
func (s shades) line(op string, x, y int, text string) string {
	side, n := s.after, y
	if op == "-" {
		side, n = s.before, x
	}
	if n < len(side) {
		return strings.TrimSuffix(side[n], "\r")
	}
	return html.EscapeString(text)
}

// pageHTML is what the page shows of a message that is not a tool call.
func pageHTML(m transcript.Message) string {
	if m.Kind != transcript.Text && m.Kind != transcript.Summary {
		return ""
	}
	return transcript.Fragment(m.Text, highlightCode)
}

// pageFile is the content of a text file as HTML.
func pageFile(path, text string) string {
	if lines := highlighted(path, text); lines != nil {
		return strings.Join(lines, "\n")
	}
	return html.EscapeString(text)
}
