package linediff

import (
	"bytes"

	"znkr.io/diff"
	"znkr.io/diff/textdiff"
)

// around is how many equal lines on either side of a change are compared with it. Where a
// change could be put in several places, these lines decide, as they do in a diff of the
// whole texts.
const around = 32

// Edit is lines of one version in the place of lines of another. Lines are counted from 0.
type Edit struct{ From, FromLen, To, ToLen int }

// Edits returns how two texts differ, in order and without the lines around. Everything
// between two edits is the same in both texts. Equal beginnings and ends are skipped without
// splitting them into lines, so that a small change of a large text costs little.
func Edits(before, after []byte) []Edit {
	if bytes.Equal(before, after) {
		return nil
	}
	head := commonHead(before, after)
	tail := commonTail(before[head:], after[head:])
	old, now := before[head:len(before)-tail], after[head:len(after)-tail]
	skipped := bytes.Count(before[:head], newline)
	option := textdiff.IndentHeuristic()
	if len(old)+len(now) > fastDiff {
		option = diff.Fast()
	}
	var out []Edit
	for _, h := range textdiff.Hunks(string(old), string(now), option, diff.Context(0)) {
		out = append(out, Edit{
			From: skipped + h.LineNoX, FromLen: h.EndLineNoX - h.LineNoX,
			To: skipped + h.LineNoY, ToLen: h.EndLineNoY - h.LineNoY,
		})
	}
	return out
}

var newline = []byte{'\n'}

// commonHead returns the length of the whole lines at the beginning of both texts, but for
// the last few.
func commonHead(a, b []byte) int {
	n := equalPrefix(a, b)
	for range around + 1 { // the first one may be cut
		n = bytes.LastIndexByte(a[:n], '\n')
		if n < 0 {
			return 0
		}
	}
	return n + 1
}

// commonTail is commonHead for the ends of the texts.
func commonTail(a, b []byte) int {
	n := equalSuffix(a, b)
	if n == 0 {
		return 0
	}
	end := a[len(a)-n:]
	for range around + 1 {
		i := bytes.IndexByte(end, '\n')
		if i < 0 {
			return 0
		}
		end = end[i+1:]
	}
	return len(end)
}

// block is how many bytes are compared at once.
const block = 1024

func equalPrefix(a, b []byte) int {
	most := min(len(a), len(b))
	n := 0
	for n+block <= most && bytes.Equal(a[n:n+block], b[n:n+block]) {
		n += block
	}
	for n < most && a[n] == b[n] {
		n++
	}
	return n
}

func equalSuffix(a, b []byte) int {
	most := min(len(a), len(b))
	n := 0
	for n+block <= most && bytes.Equal(a[len(a)-n-block:len(a)-n], b[len(b)-n-block:len(b)-n]) {
		n += block
	}
	for n < most && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return n
}

// Lines splits a text after every newline. The lines share the memory of the text.
func Lines(text []byte) [][]byte {
	lines := make([][]byte, 0, bytes.Count(text, newline)+1)
	for len(text) > 0 {
		n := bytes.IndexByte(text, '\n') + 1
		if n == 0 {
			n = len(text)
		}
		lines = append(lines, text[:n])
		text = text[n:]
	}
	return lines
}
