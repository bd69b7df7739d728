package turns

import (
	"fmt"
	"hash/maphash"
	"sort"

	"github.com/stet-dev/stet/foreign"
)

// Lineage maps lines to turns, for a record whose lines name the line that they
// continue: a prompt may continue any of them. It keeps a few bytes for each line.
type Lineage struct {
	resumed bool
	seed    maphash.Seed
	lines   map[uint64]int32 // hash of a line's id: index in turns
	turns   []lineageTurn    // the first is what precedes the first turn
	at      map[string]int   // id of a turn: index in turns
}

type lineageTurn struct {
	id, follows string
	begin       int64
}

// NewLineage returns the lineage of a record that is read from a mark on.
func NewLineage(from foreign.Mark) *Lineage {
	return &Lineage{
		resumed: from != "", seed: maphash.MakeSeed(), lines: map[uint64]int32{}, turns: make([]lineageTurn, 1), at: map[string]int{},
	}
}

// Has reports whether a line was added.
func (l *Lineage) Has(line string) bool {
	_, ok := l.lines[maphash.String(l.seed, line)]
	return ok
}

// Add assigns a line to the last turn.
func (l *Lineage) Add(line string) {
	l.lines[maphash.String(l.seed, line)] = int32(len(l.turns) - 1)
}

// AddTo assigns a line to the turn of another one, or to the last turn if the other
// one is unknown.
func (l *Lineage) AddTo(line, other string) {
	l.Add(line)
	if turn, ok := l.lines[maphash.String(l.seed, other)]; ok {
		l.lines[maphash.String(l.seed, line)] = turn
	}
}

// Begin records that a turn begins at an offset.
func (l *Lineage) Begin(t foreign.Turn, at int64) {
	l.at[t.ID] = len(l.turns)
	l.turns = append(l.turns, lineageTurn{t.ID, t.Follows, at})
}

// Follows returns the value of foreign.Turn.Follows for a turn whose first line
// continues another line. The error is foreign.ErrMark if that line belongs to a turn
// before the mark.
func (l *Lineage) Follows(parent string) (string, error) {
	last := int32(len(l.turns) - 1)
	turn, ok := l.lines[maphash.String(l.seed, parent)]
	switch {
	case parent == "" && last == 0 && !l.resumed:
		return "", nil
	case parent == "":
		return foreign.Beginning, nil
	case ok && turn == last:
		return "", nil
	case ok && turn > 0:
		return l.turns[turn].id, nil
	case l.resumed:
		return "", fmt.Errorf("%w: a prompt continues a turn before the mark", foreign.ErrMark)
	case ok:
		return foreign.Beginning, nil
	}
	return "", nil // the line that it continues is lost
}

// Span is a part of a record.
type Span struct{ Begin, End int64 }

// Leading returns the parts of the record that lead to an offset inside a turn, in
// order; what precedes the first turn is one of them. It returns nil if the turn does
// not exist or does not reach the offset.
func (l *Lineage) Leading(turn string, end int64) []Span {
	last, ok := l.at[turn]
	if !ok || end <= l.turns[last].begin {
		return nil
	}
	keep := map[int]bool{0: true}
	for i := last; i > 0; {
		keep[i] = true
		switch follows := l.turns[i].follows; follows {
		case foreign.Beginning:
			i = 0
		case "":
			i--
		default:
			i = l.at[follows]
		}
	}
	var spans []Span
	for i := range l.turns[:last+1] {
		s := Span{l.turns[i].begin, end}
		if i < last {
			s.End = l.turns[i+1].begin
		}
		if keep[i] && s.Begin < s.End {
			spans = append(spans, s)
		}
	}
	return spans
}

// Within reports whether an offset lies in one of several spans in order.
func Within(spans []Span, at int64) bool {
	i := sort.Search(len(spans), func(i int) bool { return spans[i].End > at })
	return i < len(spans) && spans[i].Begin <= at
}
