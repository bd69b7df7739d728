package transcript

import (
	"bytes"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"
)

// renderMarkdown returns Markdown as HTML, or false if it is better shown unrendered.
func renderMarkdown(source string) (markup, bool) {
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
	return markup(sanitizer{}.clean(b.Bytes())), true
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
