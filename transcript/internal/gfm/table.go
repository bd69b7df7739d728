package gfm

import (
	"bytes"

	gast "github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// tables makes tables of paragraphs with a row of dashes.
type tables struct{}

// Transform implements parser.ParagraphTransformer.
func (tables) Transform(node *gast.Paragraph, reader text.Reader, pc parser.Context) {
	lines, source := node.Lines(), reader.Source()
	for i := 1; i < lines.Len(); i++ {
		dashes := lines.At(i)
		columns := countColumns(dashes.Value(source))
		if columns == 0 {
			continue
		}
		head := row(lines.At(i-1), source, columns, true, pc)
		if head.ChildCount() > columns {
			return
		}
		table := ast.NewTable()
		table.SetPos(node.Pos())
		table.AppendChild(table, ast.NewTableHeader(head))
		for j := i + 1; j < lines.Len(); j++ {
			table.AppendChild(table, row(lines.At(j), source, columns, false, pc))
		}
		parent := node.Parent()
		parent.InsertAfter(parent, node, table)
		lines.SetSliced(0, i-1)
		if i == 1 {
			parent.RemoveChild(parent, node)
			return
		}
		last := lines.At(i - 2)
		last.Stop-- // the end of the line that is the last now
		lines.Set(i-2, last)
		return
	}
}

// countColumns returns how many columns a row of dashes announces, 0 if it is not
// one.
func countColumns(line []byte) int {
	if indent, _ := util.IndentWidth(line, 0); indent > 3 || len(bytes.Trim(line, "-")) == 0 {
		return 0
	}
	for _, b := range line {
		if !util.IsSpace(b) && b != '-' && b != '|' && b != ':' {
			return 0
		}
	}
	columns := bytes.Split(line, []byte{'|'})
	if util.IsBlank(columns[0]) {
		columns = columns[1:]
	}
	if n := len(columns); n > 0 && util.IsBlank(columns[n-1]) {
		columns = columns[:n-1]
	}
	for _, c := range columns {
		c = bytes.Trim(c, blanks)
		c = bytes.TrimSuffix(bytes.TrimPrefix(c, []byte{':'}), []byte{':'})
		if len(c) == 0 || len(bytes.Trim(c, "-")) > 0 {
			return 0
		}
	}
	return len(columns)
}

// row parses a line into columns cells, or into all of its cells if more is true.
func row(line text.Segment, source []byte, columns int, more bool, pc parser.Context) *ast.TableRow {
	row := ast.NewTableRow(nil)
	row.SetPos(line.Start)
	at := line.TrimLeftSpace(source)
	at = at.TrimRightSpace(source)
	b := at.Value(source)
	pos, limit := 0, len(b)
	if limit > 0 && b[0] == '|' {
		pos++
	}
	if limit > 0 && b[limit-1] == '|' {
		limit--
	}
	for pos < limit && (more || row.ChildCount() < columns) {
		cell := ast.NewTableCell()
		cell.SetPos(line.Start + pos - line.Padding)
		end := cellEnd(b, pos, limit, func(pipe int) { noteEscaped(pc, cell, at.Start+pipe-1) })
		seg := text.NewSegment(at.Start+pos, at.Start+end)
		seg = seg.TrimLeftSpace(source)
		seg = seg.TrimRightSpace(source)
		cell.Lines().Append(seg)
		row.AppendChild(row, cell)
		pos = end + 1
	}
	for row.ChildCount() < columns {
		row.AppendChild(row, ast.NewTableCell())
	}
	return row
}

// cellEnd returns the end of the cell at pos, and calls escaped for escaped pipes
// that may be within code.
func cellEnd(line []byte, pos, limit int, escaped func(pipe int)) int {
	code := false
	for ; pos < limit; pos++ {
		switch {
		case line[pos] == '`':
			code = true
		case line[pos] != '|':
		case pos == 0 || line[pos-1] != '\\':
			return pos
		case code:
			escaped(pos)
		}
	}
	return limit
}

// Code shows backslashes unchanged, except that in a table those before pipes are
// removed. Their places are known when rows are parsed, but what is code is known
// only at the end.

var escapedCellsKey = parser.NewContextKey()

// escapedCell is a cell with backslashes to remove.
type escapedCell struct {
	cell *ast.TableCell
	at   []int // where they are in the source
}

func noteEscaped(pc parser.Context, cell *ast.TableCell, backslash int) {
	cells, _ := pc.Get(escapedCellsKey).([]*escapedCell)
	if n := len(cells); n == 0 || cells[n-1].cell != cell {
		cells = append(cells, &escapedCell{cell: cell})
		pc.Set(escapedCellsKey, cells)
	}
	last := cells[len(cells)-1]
	last.at = append(last.at, backslash)
}

// escapedPipes removes the backslashes.
type escapedPipes struct{}

// Transform implements parser.ASTTransformer.
func (escapedPipes) Transform(_ *gast.Document, _ text.Reader, pc parser.Context) {
	cells, _ := pc.Get(escapedCellsKey).([]*escapedCell)
	pc.Set(escapedCellsKey, nil)
	for _, c := range cells {
		// The walk cannot fail: its function never returns an error.
		_ = gast.Walk(c.cell, func(n gast.Node, entering bool) (gast.WalkStatus, error) {
			if entering && n.Kind() == gast.KindCodeSpan {
				c.unescape(n)
			}
			return gast.WalkContinue, nil
		})
	}
}

// unescape cuts the texts of a code span where backslashes are.
func (c *escapedCell) unescape(code gast.Node) {
	var texts []*gast.Text
	for n := code.FirstChild(); n != nil; n = n.NextSibling() {
		if t, ok := n.(*gast.Text); ok {
			texts = append(texts, t)
		}
	}
	for _, t := range texts {
		rest := t
		for _, at := range c.at {
			if s := rest.Segment; s.Start <= at && at < s.Stop {
				before, after := gast.NewRawTextSegment(s.WithStop(at)), gast.NewRawTextSegment(s.WithStart(at+1))
				code.InsertAfter(code, rest, before)
				code.InsertAfter(code, before, after)
				code.RemoveChild(code, rest)
				rest = after
			}
		}
	}
}
