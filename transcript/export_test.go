package transcript

import (
	"strings"

	"github.com/yuin/goldmark/ast"
)

// Sanitize returns what the sanitizer leaves of HTML, for pages with highlighted code or
// without.
func Sanitize(source string, classes bool) string {
	return string(sanitizer{classes: classes}.clean([]byte(source)))
}

// Unsanitized returns what Fragment sanitizes.
func Unsanitized(source string, highlight Highlighter) string {
	return string(renderFragment(source, highlight))
}

// MarkdownProblem tells what a document holds that it must not.
func MarkdownProblem(doc string) string {
	node, _ := parse(doc)
	turns := 0
	problem := ""
	each(node, func(n ast.Node) {
		switch n := n.(type) {
		case *ast.RawHTML, *ast.HTMLBlock:
			problem = "holds HTML"
		case *ast.Heading:
			if strings.HasPrefix(string(n.Lines().Value([]byte(doc))), "Turn 2") && n.Parent() == node {
				turns++
			}
		}
	})
	switch {
	case problem != "":
	case unsafeLinks(doc):
		problem = "links or loads what it must not"
	case turns != 1:
		problem = "swallows what comes after it"
	}
	return problem
}
