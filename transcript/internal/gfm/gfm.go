// Package gfm adds tables, strikethrough and task lists to goldmark. It renders the
// same HTML as goldmark's own package, github.com/yuin/goldmark/extension, without
// alignments and checkboxes, which a sanitizer of styles and inputs would remove
// anyway. That package also recognises links, with patterns that are compiled at
// every program start, which takes a millisecond.
//
// It follows that package (© 2019 Yusuke Inuzuka, MIT licence); the tests compare the
// two.
//
//	md := goldmark.New(goldmark.WithExtensions(gfm.Extension{}))
//	err := md.Convert(source, w)
package gfm

import (
	"bytes"
	"strings"

	"github.com/yuin/goldmark"
	gast "github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// Extension is a goldmark.Extender.
type Extension struct{}

// Extend implements goldmark.Extender. The priorities are those of goldmark.
func (Extension) Extend(m goldmark.Markdown) {
	m.Parser().AddOptions(
		parser.WithParagraphTransformers(util.Prioritized(tables{}, 200)),
		parser.WithASTTransformers(util.Prioritized(escapedPipes{}, 0)),
		parser.WithInlineParsers(util.Prioritized(boxes{}, 0), util.Prioritized(strikes{}, 500)),
	)
	m.Renderer().AddOptions(renderer.WithNodeRenderers(util.Prioritized(writer{}, 500)))
}

// blanks are the white space of goldmark's patterns.
const blanks = "\t\n\f\r "

// boxes parses the boxes of task lists: "[ ]" or "[x]" where a list item begins.
type boxes struct{}

// Trigger implements parser.InlineParser.
func (boxes) Trigger() []byte { return []byte{'['} }

// Parse implements parser.InlineParser.
func (boxes) Parse(parent gast.Node, block text.Reader, _ parser.Context) gast.Node {
	item, ok := parent.Parent().(*gast.ListItem)
	if !ok || item.FirstChild() != parent || parent.HasChildren() {
		return nil
	}
	line, _ := block.PeekLine()
	if len(line) < 3 || line[0] != '[' || line[2] != ']' || strings.IndexByte(blanks+"xX", line[1]) < 0 {
		return nil
	}
	block.Advance(len(line) - len(bytes.TrimLeft(line[3:], blanks)))
	return ast.NewTaskCheckBox(line[1] == 'x' || line[1] == 'X')
}

// strikes parses "~text~" and "~~text~~".
type strikes struct{}

// Trigger implements parser.InlineParser.
func (strikes) Trigger() []byte { return []byte{'~'} }

// Parse implements parser.InlineParser.
func (strikes) Parse(_ gast.Node, block text.Reader, pc parser.Context) gast.Node {
	before := block.PrecendingCharacter()
	line, segment := block.PeekLine()
	node := parser.ScanDelimiter(line, before, 1, strikes{})
	if node == nil || node.OriginalLength > 2 || before == '~' {
		return nil
	}
	node.Segment = segment.WithStop(segment.Start + node.OriginalLength)
	block.Advance(node.OriginalLength)
	pc.PushDelimiter(node)
	return node
}

// IsDelimiter implements parser.DelimiterProcessor.
func (strikes) IsDelimiter(b byte) bool { return b == '~' }

// CanOpenCloser implements parser.DelimiterProcessor.
func (strikes) CanOpenCloser(opener, closer *parser.Delimiter) bool {
	return opener.Char == closer.Char
}

// OnMatch implements parser.DelimiterProcessor.
func (strikes) OnMatch(int) gast.Node { return ast.NewStrikethrough() }

// writer writes the nodes of this package.
type writer struct{}

// RegisterFuncs implements renderer.NodeRenderer.
func (writer) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindStrikethrough, between("<del>", "</del>"))
	r.Register(ast.KindTaskCheckBox, between(" ", ""))
	r.Register(ast.KindTable, between("<table>\n", "</table>\n"))
	r.Register(ast.KindTableHeader, func(w util.BufWriter, source []byte, n gast.Node, entering bool) (gast.WalkStatus, error) {
		end := "</tr>\n</thead>\n"
		if n.NextSibling() != nil {
			end += "<tbody>\n"
		}
		return between("<thead>\n<tr>\n", end)(w, source, n, entering)
	})
	r.Register(ast.KindTableRow, func(w util.BufWriter, source []byte, n gast.Node, entering bool) (gast.WalkStatus, error) {
		end := "</tr>\n"
		if n.NextSibling() == nil {
			end += "</tbody>\n"
		}
		return between("<tr>\n", end)(w, source, n, entering)
	})
	r.Register(ast.KindTableCell, func(w util.BufWriter, source []byte, n gast.Node, entering bool) (gast.WalkStatus, error) {
		if n.Parent().Kind() == ast.KindTableHeader {
			return between("<th>", "</th>\n")(w, source, n, entering)
		}
		return between("<td>", "</td>\n")(w, source, n, entering)
	})
}

// between writes the content of a node between two pieces of HTML.
func between(begin, end string) renderer.NodeRendererFunc {
	return func(w util.BufWriter, _ []byte, _ gast.Node, entering bool) (gast.WalkStatus, error) {
		s := end
		if entering {
			s = begin
		}
		if _, err := w.WriteString(s); err != nil {
			return gast.WalkStop, err
		}
		return gast.WalkContinue, nil
	}
}
