package linediff

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"znkr.io/diff"
	"znkr.io/diff/textdiff"
)

// Limits of the comparison of long texts. Together they bound its time for any texts.
const (
	smallArea = 1 << 20 // lines × lines of a part whose lines are compared one by one
	allAreas  = 1 << 27 // the same, of all such parts
	maxDepth  = 12      // how often a part is split again
	maxRepeat = 8       // how often a line may occur in a part to split it
)

// changes returns the differences between two texts. Short ones are compared exactly.
// In long ones, lines that occur equally often in both versions split them into
// parts, until the parts are short; a part that is still long is removed and added as
// a whole, and the result is coarse. It ends early with the error of a done context.
func changes(ctx context.Context, before, after []byte) (edits []Edit, coarse bool, err error) {
	if err := ctx.Err(); err != nil {
		return nil, false, err
	}
	if len(before)+len(after) > fastDiff {
		m := &matcher{ctx: ctx, area: smallArea, left: allAreas}
		return m.match(before, after)
	}
	for _, h := range textdiff.Hunks(string(before), string(after), textdiff.IndentHeuristic(), diff.Context(0)) {
		edits = append(edits, Edit{From: h.LineNoX, FromLen: h.EndLineNoX - h.LineNoX, To: h.LineNoY, ToLen: h.EndLineNoY - h.LineNoY})
	}
	return edits, false, nil
}

// matcher compares long texts.
type matcher struct {
	ctx    context.Context // of the one comparison
	area   int             // up to which a part is short
	left   int             // of the areas that may be compared
	a, b   []int32         // the lines, as numbers: equal lines have equal numbers
	inA    []int32         // how often a line occurs in the part; 0 outside of split
	inB    []int32
	firstB []int32 // where a line occurs first in the part of b
	nextB  []int32 // where the line at a place occurs next in it
	edits  []Edit
	coarse bool
}

// part is a range of lines of each version: a[a0:a1] and b[b0:b1].
type part struct{ a0, a1, b0, b1 int }

// match compares two texts.
func (m *matcher) match(before, after []byte) ([]Edit, bool, error) {
	numbers := make(map[string]int32)
	for _, side := range []struct {
		text  []byte
		lines *[]int32
	}{{before, &m.a}, {after, &m.b}} {
		*side.lines = make([]int32, 0, bytes.Count(side.text, newline)+1)
		for line := range strings.Lines(string(side.text)) {
			if len(*side.lines)%4096 == 0 && m.ctx.Err() != nil {
				return nil, false, m.ctx.Err()
			}
			n, ok := numbers[line]
			if !ok {
				n = int32(len(numbers))
				numbers[line] = n
			}
			*side.lines = append(*side.lines, n)
		}
	}
	m.inA, m.inB, m.firstB = make([]int32, len(numbers)), make([]int32, len(numbers)), make([]int32, len(numbers))
	m.nextB = make([]int32, len(m.b))
	if err := m.compare(part{0, len(m.a), 0, len(m.b)}, 0); err != nil {
		return nil, false, err
	}
	return m.edits, m.coarse, nil
}

// compare compares a part.
func (m *matcher) compare(p part, depth int) error {
	if err := m.ctx.Err(); err != nil {
		return err
	}
	for p.a0 < p.a1 && p.b0 < p.b1 && m.a[p.a0] == m.b[p.b0] {
		p.a0, p.b0 = p.a0+1, p.b0+1
	}
	for p.a0 < p.a1 && p.b0 < p.b1 && m.a[p.a1-1] == m.b[p.b1-1] {
		p.a1, p.b1 = p.a1-1, p.b1-1
	}
	if p.a0 == p.a1 || p.b0 == p.b1 {
		m.add(p)
		return nil
	}
	if area := (p.a1 - p.a0) * (p.b1 - p.b0); area <= m.area && area <= m.left {
		m.left -= area
		m.exactly(p)
		return nil
	}
	pairs, common := m.split(p)
	if len(pairs) == 0 || depth == maxDepth {
		m.coarse = m.coarse || common // else there is nothing to find
		m.add(p)
		return nil
	}
	at := p
	for _, pair := range pairs {
		at.a1, at.b1 = int(pair.a), int(pair.b)
		if err := m.compare(at, depth+1); err != nil {
			return err
		}
		at.a0, at.b0 = at.a1+1, at.b1+1
	}
	at.a1, at.b1 = p.a1, p.b1
	return m.compare(at, depth+1)
}

// exactly compares a short part line by line.
func (m *matcher) exactly(p part) {
	a, b := p.a0, p.b0
	for _, e := range diff.Edits(m.a[p.a0:p.a1], m.b[p.b0:p.b1]) {
		switch e.Op {
		case diff.Delete:
			m.add(part{a, a + 1, b, b})
			a++
		case diff.Insert:
			m.add(part{a, a, b, b + 1})
			b++
		default:
			a, b = a+1, b+1
		}
	}
}

// add adds an edit, or makes the last one longer.
func (m *matcher) add(p part) {
	if p.a0 == p.a1 && p.b0 == p.b1 {
		return
	}
	if n := len(m.edits) - 1; n >= 0 {
		last := &m.edits[n]
		if last.From+last.FromLen == p.a0 && last.To+last.ToLen == p.b0 {
			last.FromLen += p.a1 - p.a0
			last.ToLen += p.b1 - p.b0
			return
		}
	}
	m.edits = append(m.edits, Edit{From: p.a0, FromLen: p.a1 - p.a0, To: p.b0, ToLen: p.b1 - p.b0})
}

type pair struct{ a, b int32 }

// split returns pairs of equal lines in the order of both versions, and whether the
// versions have any line in common. It pairs, in order, the rare lines that occur
// equally often in both, and keeps the largest set of pairs that do not cross.
func (m *matcher) split(p part) (pairs []pair, common bool) {
	for _, n := range m.a[p.a0:p.a1] {
		m.inA[n]++
	}
	for i := p.b1 - 1; i >= p.b0; i-- {
		n := m.b[i]
		common = common || m.inA[n] > 0
		if m.inB[n]++; m.inB[n] > 1 {
			m.nextB[i] = m.firstB[n]
		}
		m.firstB[n] = int32(i)
	}
	for i := p.a0; i < p.a1; i++ {
		if n := m.a[i]; m.inA[n] == m.inB[n] && m.inA[n] <= maxRepeat {
			at := m.firstB[n]
			pairs = append(pairs, pair{int32(i), at})
			m.firstB[n] = m.nextB[at]
		}
	}
	for _, n := range m.a[p.a0:p.a1] {
		m.inA[n] = 0
	}
	for _, n := range m.b[p.b0:p.b1] {
		m.inB[n] = 0
	}
	return ascending(pairs), common
}

// ascending returns the longest subsequence of pairs that is in the order of b; pairs
// are already in the order of a.
func ascending(pairs []pair) []pair {
	before := make([]int, len(pairs)) // the pair before one, in the best sequence that ends with it
	var ends []int                    // the last pair of the best sequence of each length
	for i, p := range pairs {
		n, _ := slices.BinarySearchFunc(ends, p.b, func(end int, b int32) int { return int(pairs[end].b) - int(b) })
		before[i] = -1
		if n > 0 {
			before[i] = ends[n-1]
		}
		if n == len(ends) {
			ends = append(ends, i)
		} else {
			ends[n] = i
		}
	}
	out := make([]pair, len(ends))
	if len(ends) == 0 {
		return out
	}
	for n, i := len(ends)-1, ends[len(ends)-1]; n >= 0; n, i = n-1, before[i] {
		out[n] = pairs[i]
	}
	return out
}
