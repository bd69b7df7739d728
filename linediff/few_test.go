package linediff

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"znkr.io/diff"
	"znkr.io/diff/textdiff"
)

// TestFewEditsAreThoseOfTheDiff compares the short way with the long one.
func TestFewEditsAreThoseOfTheDiff(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	next, short := 0, 0
	line := func() []byte {
		switch next++; rnd.IntN(8) {
		case 0:
			return []byte("}\n")
		case 1:
			return []byte("\n")
		case 2:
			return fmt.Appendf(nil, "line %d\n", rnd.IntN(30))
		}
		return fmt.Appendf(nil, "\tline %d\n", next)
	}
	for range 3000 {
		var before [][]byte
		for range rnd.IntN(60) {
			before = append(before, line())
		}
		after := slices.Clone(before)
		for range 1 + rnd.IntN(4) {
			at := rnd.IntN(len(after) + 1)
			end := min(at+rnd.IntN(3), len(after))
			var fresh [][]byte
			for range rnd.IntN(3) {
				fresh = append(fresh, line())
			}
			after = slices.Replace(after, at, end, fresh...)
		}
		old, now := bytes.Join(before, nil), bytes.Join(after, nil)
		if rnd.IntN(4) == 0 {
			old = append(old, "the end"...)
		}
		if rnd.IntN(4) == 0 {
			now = append(now, "the end"...)
		}
		got, ok := fewEdits(old, now, 0)
		if !ok {
			continue
		}
		short++
		var want []Edit
		for _, h := range textdiff.Hunks(string(old), string(now), textdiff.IndentHeuristic(), diff.Context(0)) {
			want = append(want, Edit{h.LineNoX, h.EndLineNoX - h.LineNoX, h.LineNoY, h.EndLineNoY - h.LineNoY})
		}
		if !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v\n%q\n%q", got, want, old, now)
		}
	}
	if short < 500 {
		t.Errorf("only %d texts went the short way", short)
	}
}
