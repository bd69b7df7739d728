package jsoncheckpoint

import (
	"encoding/json"
	"fmt"
	"strings"

	"znkr.io/diff"
)

// Change replaces the lines Start to End-1 of V0, counted from 1, with Lines. An
// empty range inserts before the line Start.
type Change struct {
	Start, End int
	Lines      []string
}

type changeJSON struct {
	Original *rangeJSON `json:"original"`
	Modified []string   `json:"modified"`
}

type rangeJSON struct {
	Start int `json:"startLineNumber"`
	End   int `json:"endLineNumberExclusive"`
}

// MarshalJSON writes a change.
func (c Change) MarshalJSON() ([]byte, error) {
	return json.Marshal(changeJSON{&rangeJSON{c.Start, c.End}, list(c.Lines)})
}

// UnmarshalJSON reads a change.
func (c *Change) UnmarshalJSON(data []byte) error {
	var j changeJSON
	if err := json.Unmarshal(data, &j); err != nil {
		return fmt.Errorf("%w: change: %v", ErrMalformed, err)
	}
	if j.Original == nil || j.Modified == nil {
		return fmt.Errorf("%w: a change without range or lines", ErrMalformed)
	}
	*c = Change{j.Original.Start, j.Original.End, j.Modified}
	return nil
}

// checkChanges rejects changes that overlap or are out of order.
func checkChanges(changes []Change) error {
	next := 1
	for i, c := range changes {
		if c.Start < next || c.End < c.Start {
			return fmt.Errorf("%w: change %d of lines %d to %d comes after line %d", ErrMalformed, i, c.Start, c.End, next)
		}
		next = c.End
	}
	return nil
}

// Apply returns V0's lines with the changes made. Changes past the end append.
func Apply(v0 []string, changes []Change) []string {
	out := make([]string, 0, len(v0))
	at := 0 // processed lines of V0
	for _, c := range changes {
		if start := min(c.Start-1, len(v0)); start > at {
			out = append(out, v0[at:start]...)
			at = start
		}
		out = append(out, c.Lines...)
		at = max(at, min(c.End-1, len(v0)))
	}
	return append(out, v0[at:]...)
}

// Diff returns the changes that lead from V0's lines to others.
func Diff(v0, lines []string) []Change {
	var out []Change
	for _, h := range diff.Hunks(v0, lines, diff.Context(0)) {
		out = append(out, Change{h.PosX + 1, h.EndX + 1, append([]string(nil), lines[h.PosY:h.EndY]...)})
	}
	return out
}

// text is a content split into lines.
type text struct {
	lines []string
	eol   string
}

// split splits content into lines. If all of them end in CR LF, that is the line end,
// as in editors; if line ends are mixed, the CR stays part of its line.
func split(content string) text {
	t := text{eol: "\n"}
	if n := strings.Count(content, "\n"); n > 0 && n == strings.Count(content, "\r\n") {
		t.eol = "\r\n"
	}
	t.lines = strings.Split(content, t.eol) // an empty text has one empty line
	return t
}

func (t text) String() string { return strings.Join(t.lines, t.eol) }

// Text returns the content of the file, given V0. A file that the conversation
// created has none, and V0 is ignored.
func (f *File) Text(v0 string) string {
	if f.NewlyCreated {
		v0 = ""
	}
	t := split(v0)
	t.lines = Apply(t.lines, f.Changes)
	return t.String()
}

// changesTo returns the changes that lead from one content to another; ok is false if
// changes cannot express the difference, for example in line ends.
func changesTo(v0, content string) (changes []Change, ok bool) {
	from, to := split(v0), split(content)
	if from.eol != to.eol && len(from.lines) > 1 {
		to = text{lines: strings.Split(content, from.eol), eol: from.eol}
	} else if from.eol != to.eol { // V0 has no line end; readers then use a line feed
		to = text{lines: strings.Split(content, "\n"), eol: "\n"}
	}
	changes = Diff(from.lines, to.lines)
	if v0 == "" && content != "" {
		// The one empty line is replaced, also where it could be kept: readers that count
		// no line in an empty text understand that, too.
		changes = []Change{{1, 2, to.lines}}
	}
	check := text{lines: Apply(from.lines, changes), eol: from.eol}
	return changes, check.String() == content
}
