package transcript

import (
	"bufio"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"strconv"
	"strings"
)

// pageStyle is the style of the page, the only one that its policy allows.
//
//go:embed page.css
var pageStyle string

// markup is HTML that is written as it is: a constant of this package, or what the
// sanitizer returned. Texts are strings, which the compiler does not take for markup.
type markup string

// escaped replaces characters that are special in HTML, in elements and in quoted
// attributes.
var escaped = strings.NewReplacer("\x00", "\uFFFD", `"`, "&#34;", "&", "&amp;", "'", "&#39;", "+", "&#43;", "<", "&lt;", ">", "&gt;")

// page writes the page. It is written by hand, because a template makes the linker keep
// every method of the program: templates find methods by name. After an error it writes
// nothing more.
type page struct {
	w   *bufio.Writer
	err error
}

func (p *page) put(m markup) { p.write(string(m)) }

func (p *page) text(s string) { p.write(escaped.Replace(s)) }

func (p *page) write(s string) {
	if p.err == nil {
		_, p.err = p.w.WriteString(s)
	}
}

// optional writes a text between before and after, or nothing if there is no text.
func (p *page) optional(before markup, text string, after markup) {
	if text != "" {
		p.put(before)
		p.text(text)
		p.put(after)
	}
}

// when writes m if the condition holds.
func (p *page) when(condition bool, m markup) {
	if condition {
		p.put(m)
	}
}

func writeHTML(ctx context.Context, w *bufio.Writer, t *Transcript, opts *Options) error {
	p := &page{w: w}
	p.head(t)
	turn := 0
	for m, err := range t.Messages(ctx, opts) {
		if err != nil {
			return err
		}
		if m.Turn != turn && m.Turn > 0 && m.Subagent == "" {
			turn = m.Turn
			p.turn(turn, opts.note(turn))
		}
		p.message(m)
		if p.err != nil {
			return p.err
		}
	}
	p.put("</main>\n</body>\n</html>\n")
	return p.err
}

func (p *page) head(t *Transcript) {
	a := t.about()
	title := oneLine(a.Title)
	if title == "" {
		title = "Conversation"
	}
	sum := sha256.Sum256([]byte(pageStyle))
	p.put(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src '`)
	p.text("sha256-" + base64.StdEncoding.EncodeToString(sum[:]))
	p.put(`'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="generator" content="stet">
<title>`)
	p.text(title)
	p.put("</title>\n<style>")
	p.put(markup(pageStyle))
	p.put("</style>\n</head>\n<body>\n<h1><bdi>")
	p.text(title)
	p.put("</bdi></h1>\n<dl>\n")
	for _, f := range []struct{ name, value string }{
		{"Conversation", a.ID}, {"Agent", a.Agent}, {"Workspace", a.Workspace},
		{"Created", clock(a.Created)}, {"Updated", clock(a.Updated)}, {"Root", a.Root},
	} {
		if f.value != "" {
			p.put("<div><dt>")
			p.text(f.name)
			p.put("</dt><dd><bdi>")
			p.text(oneLine(f.value))
			p.put("</bdi></dd></div>\n")
		}
	}
	p.put("</dl>\n<main>\n")
}

func (p *page) turn(number int, note string) {
	p.put(`<h2 id="turn-`)
	p.text(strconv.Itoa(number))
	p.put(`">Turn `)
	p.text(strconv.Itoa(number))
	p.put("</h2>")
	p.optional(`<p class="note">`, note, "</p>")
	p.put("\n")
}

func (p *page) message(m Message) {
	class := string(m.Speaker())
	if m.Subagent != "" {
		class += " sub"
	}
	if m.Kind == Failure {
		class += " error"
	}
	p.put(`<article class="`)
	p.text(class)
	p.put(`" dir="auto">` + "\n" + `<header class="who">`)
	p.text(heading(m))
	p.optional(" · subagent <code>", oneLine(m.Subagent), "</code>")
	p.put("</header>\n")
	p.content(m)
	p.put("</article>\n")
}

func (p *page) content(m Message) {
	switch m.Kind {
	case Failure:
		p.plain(Visible(m.Text))
	case Thinking, Summary:
		p.optional(`<details><summary>Show</summary><div class="plain">`, Visible(m.Text), "</div></details>\n")
	case Shell:
		p.plain(Visible("$ " + m.Text))
		p.tool(m.Tool, "", true)
	case ToolCall:
		input := ""
		if m.Tool.Input != nil {
			input = Visible(indented(m.Tool.Input))
		}
		p.tool(m.Tool, input, false)
	default:
		if m.Role == Assistant {
			if rendered, ok := renderMarkdown(m.Text); ok {
				p.put(rendered)
				return
			}
		}
		p.plain(Visible(m.Words()))
	}
}

func (p *page) plain(text string) { p.optional(`<div class="plain">`, text, "</div>\n") }

func (p *page) tool(t *Tool, input string, open bool) {
	p.put("<details")
	p.when(open || t.Diff != "", " open")
	p.put("><summary><b>")
	p.text(oneLine(t.Name))
	p.put("</b>")
	p.optional(" <code>", oneLine(t.Path), "</code>")
	if t.Added+t.Removed > 0 {
		p.put(" +")
		p.text(strconv.Itoa(t.Added))
		p.put(" −")
		p.text(strconv.Itoa(t.Removed))
	}
	p.put(" · <span")
	p.when(t.Status == Failed || t.Status == TimedOut, ` class="bad"`)
	p.put(">")
	p.text(string(t.Status))
	p.put("</span>")
	p.optional(" · exit code ", number(t.Exit), "")
	p.put("</summary>\n")
	p.optional("<pre>", input, "</pre>\n")
	p.diff(Visible(t.Diff))
	p.optional("<pre>", Visible(t.Output), "</pre>\n")
	p.optional("<p>", number(t.Omitted), " bytes left out</p>\n")
	p.put("</details>\n")
}

func (p *page) diff(lines string) {
	if lines == "" {
		return
	}
	p.put("<pre>")
	for line := range strings.Lines(lines) {
		switch line[0] {
		case '+':
			p.put(`<span class="add">`)
		case '-':
			p.put(`<span class="del">`)
		case '@':
			p.put(`<span class="hunk">`)
		default:
			p.put(`<span class="same">`)
		}
		p.text(strings.TrimSuffix(line, "\n"))
		p.put("</span>")
	}
	p.put("</pre>\n")
}

// number returns "" for zero, which the page leaves out.
func number(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}
