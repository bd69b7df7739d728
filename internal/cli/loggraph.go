package cli

import (
	"maps"
	"slices"
	"strings"

	"github.com/stet-dev/stet/timeline"
)

// logGraph lays out the entries of a log: those that stand in the first column, and each
// branch that was left behind in a column of its own, up to where it left another one.
type logGraph struct {
	column []int          // of each entry
	open   []map[int]bool // by entry, the columns of branches that have a line beside it
	under  []map[int]bool // by entry, those that go on under it
	merged [][]int        // by entry, the columns that end above it in its own
	width  int            // in characters
}

func newGraph(shown []*timeline.Entry) *logGraph {
	g := &logGraph{column: make([]int, len(shown)), merged: make([][]int, len(shown)), width: 4}
	left := make(map[string]bool)
	for _, e := range shown {
		left[e.Record.ID] = e.Left
	}
	leads := make(map[int]string) // by column, the entry that its line goes to
	for i, e := range shown {
		own := 0
		if e.Left {
			own, g.merged[i] = ownColumn(leads, e.Record.ID)
			for _, c := range g.merged[i] {
				delete(leads, c)
			}
			leads[own] = e.Record.ID
		}
		g.column[i] = own
		g.open = append(g.open, openColumns(leads))
		if own > 0 {
			if delete(leads, own); left[e.Continues] {
				leads[own] = e.Continues
			}
			g.width = max(g.width, 2*own+2)
		}
		g.under = append(g.under, openColumns(leads))
	}
	return g
}

// ownColumn returns the column of an entry: the first one that leads to it, or a free one.
// The others that lead to it end there.
func ownColumn(leads map[int]string, id string) (own int, others []int) {
	var to []int
	for c, next := range leads {
		if next == id {
			to = append(to, c)
		}
	}
	if slices.Sort(to); len(to) > 0 {
		return to[0], to[1:]
	}
	for own = 1; leads[own] != ""; own++ {
	}
	return own, nil
}

func openColumns(leads map[int]string) map[int]bool {
	open := make(map[int]bool, len(leads))
	for c := range leads {
		open[c] = true
	}
	return open
}

// joins draws the ends of branches between an entry and the next one.
func (g *logGraph) joins(i int) []string {
	if i+1 == len(g.column) {
		return nil
	}
	open, lines := maps.Clone(g.under[i]), []string(nil)
	if g.parts(i) {
		lines = append(lines, joinLine(g.column[i], 0, open))
	}
	for _, c := range slices.Backward(g.merged[i+1]) {
		delete(open, c)
		lines = append(lines, joinLine(c, g.column[i+1], open))
	}
	return lines
}

// parts reports whether the branch of an entry ends there and another one follows in its
// column, so that only a line between them shows that they are two.
func (g *logGraph) parts(i int) bool {
	own := g.column[i]
	return own > 0 && !g.under[i][own] && i+1 < len(g.column) && g.column[i+1] == own
}

// joinLine draws the line of a column that ends in another one, to its left.
func joinLine(from, to int, open map[int]bool) string {
	var text strings.Builder
	for c := range from {
		bar, next := " ", " "
		if c == 0 || open[c] {
			bar = "|"
		}
		switch {
		case c == from-1:
			next = "/"
		case c >= to:
			next = "_"
		}
		if bar == " " && c > to {
			bar = "_"
		}
		text.WriteString(bar + next)
	}
	last := from
	for c := range open {
		last = max(last, c)
	}
	for c := from; c <= last; c++ {
		if open[c] {
			text.WriteString("| ")
		} else {
			text.WriteString("  ")
		}
	}
	return strings.TrimRight(text.String(), " ")
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
		case c == 0 || g.open[i][c]:
			text.WriteString(p.dim("| "))
		default:
			text.WriteString("  ")
		}
	}
	return text.String()
}

// below draws the columns under an entry, and a remark about it.
func (a *app) below(g *logGraph, i int, remark string) string {
	var text strings.Builder
	for c := range g.width / 2 {
		if c == 0 && i+1 < len(g.column) || g.under[i][c] || c == g.column[i] && g.parts(i) {
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
