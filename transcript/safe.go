package transcript

import (
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"github.com/stet-dev/stet/transcript/internal/gfm"
)

// Text is read as Markdown within these limits. Other text is shown unrendered: it is
// not written by hand, and the parser takes quadratic time (10,000 unfinished images
// take seconds, 1,000 some milliseconds).
const (
	maxMarkdown = 256 << 10
	maxBrackets = 1000
	maxQuotes   = 100 // in one line
)

// costly reports whether text exceeds the limits.
func costly(source string) bool {
	if len(source) > maxMarkdown || strings.Count(source, "[") > maxBrackets {
		return true
	}
	for line := range strings.Lines(source) {
		if strings.Count(line, ">") > maxQuotes {
			return true
		}
	}
	return false
}

// maxEscapes is how often text is parsed again after HTML in it was escaped.
const maxEscapes = 4

// markdown is created on first use, because most runs of the program need none.
var markdown = sync.OnceValue(func() goldmark.Markdown {
	return goldmark.New(goldmark.WithExtensions(gfm.Extension{}))
})

// parse reads Markdown.
func parse(source string) (ast.Node, []parser.Reference) {
	pc := parser.NewContext()
	doc := markdown().Parser().Parse(text.NewReader([]byte(source)), parser.WithContext(pc))
	return doc, pc.References()
}

// safeMarkdown returns Markdown with the content of source but without HTML: it loads
// nothing, links only to the web and affects nothing after it. Text that cannot be
// made safe becomes a code block.
func safeMarkdown(source string) string {
	source = Visible(source)
	if safe, ok := neutral(source); ok && closed(safe) && !unsafeLinks(safe) {
		return strings.TrimRight(safe, "\n") + "\n"
	}
	return Fence("text", source)
}

// neutral escapes the HTML in Markdown. Escaping can change the meaning of what
// follows, so the text is parsed again until no HTML is left.
func neutral(source string) (string, bool) {
	if costly(source) {
		return "", false
	}
	for range maxEscapes {
		doc, _ := parse(source)
		at := htmlAt(doc, source)
		if len(at) == 0 {
			return source, true
		}
		source = escapeAt(source, at)
	}
	return "", false
}

// htmlAt returns the places of all "<" that are part of HTML.
func htmlAt(doc ast.Node, source string) []int {
	var at []int
	mark := func(s text.Segment) {
		for i := s.Start; i < s.Stop && i < len(source); i++ {
			if source[i] == '<' {
				at = append(at, i)
			}
		}
	}
	each(doc, func(n ast.Node) {
		switch n := n.(type) {
		case *ast.RawHTML:
			for i := range n.Segments.Len() {
				mark(n.Segments.At(i))
			}
		case *ast.HTMLBlock:
			for i := range n.Lines().Len() {
				mark(n.Lines().At(i))
			}
			if n.HasClosure() {
				mark(n.ClosureLine)
			}
		}
	})
	slices.Sort(at)
	return slices.Compact(at)
}

func escapeAt(source string, at []int) string {
	var b strings.Builder
	last := 0
	for _, i := range at {
		b.WriteString(source[last:i])
		b.WriteString("&lt;")
		last = i + 1
	}
	b.WriteString(source[last:])
	return b.String()
}

// each calls fn for a node and all below it.
func each(doc ast.Node, fn func(ast.Node)) {
	// The walk cannot fail: its function never returns an error.
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			fn(n)
		}
		return ast.WalkContinue, nil
	})
}

// closed reports whether text after source is outside of everything that source
// began, such as a code block.
func closed(source string) bool {
	const after = "after the end of it"
	whole := source + "\n\n" + after
	doc, _ := parse(whole)
	last, ok := doc.LastChild().(*ast.Paragraph)
	return ok && last.Lines().Len() == 1 && last.Lines().At(0).Start == len(whole)-len(after)
}

// unsafeLinks reports whether Markdown links to anything but the web, a mail
// address or a place beside it, or loads an image.
func unsafeLinks(source string) bool {
	doc, refs := parse(source)
	found := false
	each(doc, func(n ast.Node) {
		switch n := n.(type) {
		case *ast.Link:
			found = found || !safeDestination(n.Destination)
		case *ast.AutoLink:
			found = found || !safeURL(string(n.URL([]byte(source))))
		case *ast.Image:
			found = true
		}
	})
	return found || slices.ContainsFunc(refs, func(r parser.Reference) bool { return !safeDestination(r.Destination()) })
}

// safeDestination checks the target of a link as a renderer reads it: without escapes
// and entities, which could hide the colon of a scheme.
func safeDestination(d []byte) bool {
	return safeURL(string(util.ResolveEntityNames(util.ResolveNumericReferences(util.UnescapePunctuations(d)))))
}

func safeURL(s string) bool {
	u, err := url.Parse(s)
	if err != nil || strings.ContainsRune(s, '\\') { // a slash for browsers
		return false
	}
	switch strings.ToLower(u.Scheme) {
	case "http", "https", "mailto":
		return true
	case "":
		return u.Host == "" // "//host" uses the scheme of the page
	}
	return false
}
