package page

import (
	"context"
	"html"
	"strings"

	"github.com/alecthomas/chroma/v2"

	"github.com/stet-dev/stet/internal/highlight"
	"github.com/stet-dev/stet/server/internal/wire"
	"github.com/stet-dev/stet/transcript"
)

// highlighted returns the lines of a text as HTML: escaped, with classes if the name of
// the file or language identifies the syntax. It is nil if there is nothing to add to
// the escaped text.
func highlighted(ctx context.Context, name, text string) []string {
	tokens := highlight.Text(ctx, name, text)
	if tokens == nil {
		return nil
	}
	var lines []string
	var line strings.Builder
	for _, token := range tokens {
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

// tokenClass maps the many kinds of tokens to those that the page colours.
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

// Shades holds the highlighted lines of both sides of a diff.
type Shades struct{ before, after []string }

// NewShades highlights both sides of a diff until the context is done.
func NewShades(ctx context.Context, path string, before, after []byte) Shades {
	return Shades{highlighted(ctx, path, wire.Valid(string(before))), highlighted(ctx, path, wire.Valid(string(after)))}
}

// Line returns a line of a diff as HTML: number n, from 0, of one side.
func (s Shades) Line(op string, x, y int, text string) string {
	side, n := s.after, y
	if op == "-" {
		side, n = s.before, x
	}
	if n < len(side) {
		return strings.TrimSuffix(side[n], "\r")
	}
	return html.EscapeString(text)
}

// Message returns the HTML of a message that is not a tool call.
func Message(ctx context.Context, m transcript.Message) string {
	if m.Kind != transcript.Text && m.Kind != transcript.Summary {
		return ""
	}
	return transcript.Fragment(m.Words(), func(language, code string) string {
		return strings.Join(highlighted(ctx, language, code), "\n")
	})
}

// File is the content of a text file as HTML.
func File(ctx context.Context, path, text string) string {
	if lines := strings.Join(highlighted(ctx, path, text), "\n"); lines != "" && len(lines) <= wire.MaxMessage/2 {
		return lines
	}
	return html.EscapeString(text)
}
