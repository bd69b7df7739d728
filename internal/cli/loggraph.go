package cli

import (
	"strings"

	"github.com/stet-dev/stet/timeline"
)

// logGraph lays out the entries of a log: current ones in the first column, and each
// abandoned branch in its own column.
type logGraph struct {
	column []int    // of each entry
	open   [][]bool // by entry, the columns of the branches open there
	last   []bool   // whether the entry is the oldest of its branch
	width  int      // in characters
}

func newGraph(shown []*timeline.Entry) *logGraph {
	g := &logGraph{column: make([]int, len(shown)), open: make([][]bool, len(shown)), last: make([]bool, len(shown)), width: 4}
	end := make(map[int]int) // place of the oldest entry of each branch
	for i, e := range shown {
		end[e.Branch] = i
	}
	columns := make(map[int]int) // of the open branches
	for i, e := range shown {
		if e.Branch != 0 && columns[e.Branch] == 0 {
			columns[e.Branch] = freeColumn(columns)
		}
		g.column[i] = columns[e.Branch]
		for _, c := range columns {
			for len(g.open[i]) <= c {
				g.open[i] = append(g.open[i], false)
			}
			g.open[i][c] = true
			g.width = max(g.width, 2*c+2)
		}
		if e.Branch != 0 && end[e.Branch] == i {
			g.last[i] = true
			delete(columns, e.Branch)
		}
	}
	return g
}

func freeColumn(taken map[int]int) int {
	used := make(map[int]bool)
	for _, c := range taken {
		used[c] = true
	}
	for c := 1; ; c++ {
		if !used[c] {
			return c
		}
	}
}

// join draws the end of a branch if another one follows, so that they look separate.
func (g *logGraph) join(i int) string {
	if !g.last[i] || i+1 == len(g.column) || g.column[i+1] == 0 {
		return ""
	}
	var text strings.Builder
	text.WriteString("|")
	for c := 1; c <= g.column[i]; c++ {
		switch {
		case c == g.column[i]:
			text.WriteString("/")
		case g.open[i][c]:
			text.WriteString(" |")
		default:
			text.WriteString("  ")
		}
	}
	return text.String()
}

// glyphs draws the columns at an entry.
func (a *app) glyphs(g *logGraph, i int, e *timeline.Entry) string {
	p := a.paint()
	own := p.cyan("o")
	switch {
	case e.Left:
		own = p.red("x")
	case len(e.Pins) > 0:
		own = p.bold(p.yellow("P"))
	}
	var text strings.Builder
	for c := range g.width / 2 {
		switch {
		case c == g.column[i]:
			text.WriteString(own + " ")
		case c == 0 || c < len(g.open[i]) && g.open[i][c]:
			text.WriteString(p.dim("| "))
		default:
			text.WriteString("  ")
		}
	}
	return text.String()
}

// below draws the columns under an entry, and a remark about it.
func (a *app) below(g *logGraph, i int, remark string) string {
	ends := func(c int) bool { // no line goes on under the entry
		return c > 0 && c == g.column[i] && g.last[i] && g.join(i) == "" || c == 0 && i+1 == len(g.column)
	}
	var text strings.Builder
	for c := range g.width / 2 {
		if open := c == 0 || c < len(g.open[i]) && g.open[i][c]; open && !ends(c) {
			text.WriteString("| ")
		} else {
			text.WriteString("  ")
		}
	}
	if isTerminal(a.out) {
		remark = cut(remark, a.width()-g.width)
	}
	return a.paint().dim(text.String() + remark)
}
