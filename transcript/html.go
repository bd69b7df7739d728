package transcript

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"strings"
	"sync"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"
)

var (
	//go:embed page.html
	pageSource string
	//go:embed page.css
	pageStyle string
)

// pages is parsed on first use, because most runs of the program write none.
var pages = sync.OnceValue(func() *template.Template { return template.Must(template.New("").Parse(pageSource)) })

// styleHash allows only the page's own style in its policy.
func styleHash() string {
	sum := sha256.Sum256([]byte(pageStyle))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// renderMarkdown returns Markdown as HTML, or false if it is better shown unrendered.
func renderMarkdown(source string) (template.HTML, bool) {
	source, ok := neutral(Visible(source))
	if !ok {
		return "", false
	}
	raw := []byte(source)
	doc := markdown().Parser().Parse(text.NewReader(raw))
	imagesToLinks(doc)
	var b bytes.Buffer
	if err := markdown().Renderer().Render(&b, raw, doc); err != nil {
		return "", false
	}
	return template.HTML(sanitizer{}.clean(b.Bytes())), true
}

// imagesToLinks replaces images, which would be loaded, by links.
func imagesToLinks(doc ast.Node) {
	var images []*ast.Image
	each(doc, func(n ast.Node) {
		if image, ok := n.(*ast.Image); ok {
			images = append(images, image)
		}
	})
	for _, image := range images {
		link := ast.NewLink()
		link.Destination = image.Destination
		for c := image.FirstChild(); c != nil; c = image.FirstChild() {
			link.AppendChild(link, c)
		}
		if link.ChildCount() == 0 {
			link.AppendChild(link, ast.NewString([]byte("image")))
		}
		image.Parent().ReplaceChild(image.Parent(), image, link)
	}
}

type pageField struct{ Name, Value string }

// pageMessage is a message on the page.
type pageMessage struct {
	Class, Heading, Subagent string
	HTML                     template.HTML
	Plain, Folded            string
	Tool                     *pageTool
}

type pageTool struct {
	*Tool
	Name, Path, Input, Output string
	Diff                      []pageLine
	Open, Changed, Bad        bool
}

type pageLine struct{ Class, Text string }

type pageTurn struct {
	Number int
	Note   string
}

func writeHTML(ctx context.Context, w *bufio.Writer, t *Transcript, opts *Options) error {
	if err := pages().ExecuteTemplate(w, "head", pageHead(t)); err != nil {
		return err
	}
	turn := 0
	for m, err := range t.Messages(ctx, opts) {
		if err != nil {
			return err
		}
		if m.Turn != turn && m.Turn > 0 && m.Subagent == "" {
			turn = m.Turn
			if err := pages().ExecuteTemplate(w, "turn", pageTurn{turn, opts.note(turn)}); err != nil {
				return err
			}
		}
		if err := pages().ExecuteTemplate(w, "message", pageView(m)); err != nil {
			return err
		}
	}
	return pages().ExecuteTemplate(w, "foot", nil)
}

func pageHead(t *Transcript) any {
	a := t.about()
	title := oneLine(a.Title)
	if title == "" {
		title = "Conversation"
	}
	var fields []pageField
	for _, f := range []pageField{
		{"Conversation", a.ID}, {"Agent", a.Agent}, {"Workspace", a.Workspace},
		{"Created", clock(a.Created)}, {"Updated", clock(a.Updated)}, {"Root", a.Root},
	} {
		if f.Value != "" {
			fields = append(fields, pageField{f.Name, oneLine(f.Value)})
		}
	}
	return struct {
		Title     string
		StyleHash string
		Style     template.CSS
		Fields    []pageField
	}{title, styleHash(), template.CSS(pageStyle), fields}
}

func pageView(m Message) pageMessage {
	v := pageMessage{Class: string(m.Speaker()), Heading: heading(m), Subagent: oneLine(m.Subagent)}
	if m.Subagent != "" {
		v.Class += " sub"
	}
	switch m.Kind {
	case Failure:
		v.Class += " error"
		v.Plain = Visible(m.Text)
	case Thinking, Summary:
		v.Folded = Visible(m.Text)
	case Shell:
		v.Plain = Visible("$ " + m.Text)
		v.Tool = toolView(m.Tool, true)
		v.Tool.Input = ""
	case ToolCall:
		v.Tool = toolView(m.Tool, false)
	default:
		ok := false
		if m.Role == Assistant {
			v.HTML, ok = renderMarkdown(m.Text)
		}
		if !ok {
			v.Plain = Visible(m.Words())
		}
	}
	return v
}

func toolView(t *Tool, open bool) *pageTool {
	v := &pageTool{
		Tool: t, Name: oneLine(t.Name), Path: oneLine(t.Path), Output: Visible(t.Output), Open: open || t.Diff != "",
		Changed: t.Added+t.Removed > 0, Bad: t.Status == Failed || t.Status == TimedOut,
	}
	if t.Input != nil {
		v.Input = Visible(indented(t.Input))
	}
	for line := range strings.Lines(Visible(t.Diff)) {
		class := "same"
		switch line[0] {
		case '+':
			class = "add"
		case '-':
			class = "del"
		case '@':
			class = "hunk"
		}
		v.Diff = append(v.Diff, pageLine{class, strings.TrimSuffix(line, "\n")})
	}
	return v
}
