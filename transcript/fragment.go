package transcript

import (
	"bytes"
	"html"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"github.com/stet-dev/stet/transcript/internal/gfm"
)

// Highlighter returns code as HTML in which only span elements with short classes are
// used, or "" for an unknown language.
type Highlighter func(language, code string) string

// Fragment renders Markdown as an HTML fragment that runs nothing, loads nothing and
// links only to the web. It is empty for text that is better shown unrendered, for
// example because it would take long to parse. Code blocks go through highlight
// unless it is nil.
func Fragment(source string, highlight Highlighter) string {
	return string(sanitizer{classes: true}.clean(renderFragment(source, highlight)))
}

func renderFragment(source string, highlight Highlighter) []byte {
	source, ok := neutral(Visible(source))
	if !ok {
		return nil
	}
	raw := []byte(source)
	doc := markdown().Parser().Parse(text.NewReader(raw))
	imagesToLinks(doc)
	r := goldmark.New(
		goldmark.WithExtensions(gfm.Extension{}),
		goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(codeRenderer{highlight}, 100))),
	).Renderer()
	var b bytes.Buffer
	if err := r.Render(&b, raw, doc); err != nil {
		return nil
	}
	return b.Bytes()
}

// codeRenderer writes fenced code blocks.
type codeRenderer struct{ highlight Highlighter }

// RegisterFuncs implements renderer.NodeRenderer.
func (c codeRenderer) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindFencedCodeBlock, c.render)
}

func (c codeRenderer) render(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	block := node.(*ast.FencedCodeBlock)
	var code bytes.Buffer
	for i := range block.Lines().Len() {
		line := block.Lines().At(i)
		code.Write(line.Value(source))
	}
	shown := ""
	if language := block.Language(source); c.highlight != nil && len(language) > 0 {
		shown = c.highlight(string(language), code.String())
	}
	if shown == "" {
		shown = html.EscapeString(code.String())
	}
	for _, s := range []string{"<pre><code>", shown, "</code></pre>\n"} {
		if _, err := w.WriteString(s); err != nil {
			return ast.WalkStop, err
		}
	}
	return ast.WalkSkipChildren, nil
}
