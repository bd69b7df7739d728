package main

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
)

// exponent is the slope of a curve between the largest size and one a hundred times
// smaller, or the smallest: the beginning is mostly constant costs.
func (g *group) exponent(curve int) float64 {
	last := g.points[len(g.points)-1]
	first := g.points[0]
	for _, p := range g.points {
		if p.size*100 <= last.size {
			first = p
		}
	}
	if first.size == last.size || first.costs[curve] <= 0 || last.costs[curve] <= 0 {
		return 0
	}
	return math.Log(last.costs[curve]/first.costs[curve]) / math.Log(float64(last.size)/float64(first.size))
}

// worse is the exponent from which on a curve counts as worse than linear. What is above 1
// by less is noise of a busy machine.
const worse = 1.15

// table lays out the groups, one row for each curve.
func table(groups []*group) string {
	var out strings.Builder
	for _, g := range groups {
		fmt.Fprintf(&out, "### %s\n\n![%s](growth/%s.svg)\n\n| milliseconds at", g.title, g.title, g.name)
		for _, size := range g.sizes {
			fmt.Fprintf(&out, " | %s", thousands(size))
		}
		fmt.Fprintf(&out, " %s | exponent |\n|---%s|---|\n", g.axis, strings.Repeat("|---", len(g.sizes)))
		var notes []string
		for i, name := range g.curves {
			fmt.Fprintf(&out, "| %s", name)
			slope := g.exponent(i)
			last := g.points[len(g.points)-1]
			for n, size := range g.sizes {
				if n < len(g.points) {
					fmt.Fprintf(&out, " | %s", figure(g.points[n].costs[i]))
					continue
				}
				guess := last.costs[i] * math.Pow(float64(size)/float64(last.size), max(0, slope))
				fmt.Fprintf(&out, " | *%s*", figure(guess))
			}
			fmt.Fprintf(&out, " | %.2f |\n", slope)
			if why := g.why[name]; why != "" {
				notes = append(notes, fmt.Sprintf("%s: %s", name, why))
			} else if slope > worse {
				notes = append(notes, fmt.Sprintf("%s: grows faster than its size, and nobody has said why.", name))
			}
		}
		if len(g.points) < len(g.sizes) {
			notes = append(notes, "Figures in italics are extrapolated from the last one by the exponent; these sizes were not measured.")
		}
		for _, n := range notes {
			fmt.Fprintf(&out, "\n%s\n", n)
		}
		out.WriteString("\n")
	}
	return out.String()
}

// figure writes a cost with two or three digits that mean something.
func figure(ms float64) string {
	switch {
	case ms < 0.095:
		return fmt.Sprintf("%.3f", ms)
	case ms < 0.95:
		return fmt.Sprintf("%.2f", ms)
	case ms < 9.5:
		return fmt.Sprintf("%.1f", ms)
	}
	return thousands(int(ms + 0.5))
}

func thousands(n int) string {
	digits := fmt.Sprint(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// The part of the page that this command writes.
var begin, end = []byte("<!-- growth -->\n"), []byte("<!-- /growth -->\n")

// splice writes the tables into the page.
func splice(path, tables string) error {
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	from, to := bytes.Index(page, begin), bytes.Index(page, end)
	if from < 0 || to < from {
		return fmt.Errorf("%s has no part between %q and %q", path, begin, end)
	}
	return os.WriteFile(path, slices.Concat(page[:from], begin, []byte("\n"+tables), page[to:]), 0o644)
}
