package linediff

import (
	"bytes"
	"context"
)

// around is how many equal lines on either side of a change are compared with it. Where a
// change could be put in several places, these lines decide, as they do in a diff of the
// whole texts.
const around = 32

// Edit replaces lines of one version with lines of another. Lines are counted from 0.
type Edit struct{ From, FromLen, To, ToLen int }

// Edits returns the differences between two texts, in order and without surrounding lines.
// Everything between two edits is the same in both texts. Equal beginnings and ends are
// skipped without splitting them into lines, so a small change of a large text costs little.
// It fails only with the error of a done context.
func Edits(ctx context.Context, before, after []byte) ([]Edit, error) {
	if bytes.Equal(before, after) {
		return nil, nil
	}
	head := commonHead(before, after)
	tail := commonTail(before[head:], after[head:])
	old, now := before[head:len(before)-tail], after[head:len(after)-tail]
	skipped := bytes.Count(before[:head], newline)
	if out, ok := fewEdits(old, now, skipped); ok {
		return out, nil
	}
	edits, _, err := changes(ctx, old, now)
	for i := range edits {
		edits[i].From += skipped
		edits[i].To += skipped
	}
	return edits, err
}

const (
	few  = 64 // changed lines that fewEdits looks for in the other text
	near = 16 // lines of a change within which the texts must agree again
)

// fewEdits finds, without a table of all lines, the edits of two texts that differ in
// only a few lines, none of which the other text has. There is only one such list:
// every line that both texts have is kept. It returns false for other texts.
func fewEdits(before, after []byte, skipped int) (out []Edit, ok bool) {
	removed, added := make(map[string]bool), make(map[string]bool)
	old, now, from, to := before, after, skipped, skipped
	for len(old) > 0 || len(now) > 0 {
		line := firstLine(old)
		if len(line) > 0 && bytes.Equal(line, firstLine(now)) {
			old, now, from, to = old[len(line):], now[len(line):], from+1, to+1
			continue
		}
		gone, come, ok := change(old, now)
		if !ok || len(removed)+len(added) > few {
			return nil, false
		}
		out = append(out, Edit{From: from, FromLen: len(gone), To: to, ToLen: len(come)})
		for _, line := range gone {
			removed[string(line)] = true
			old, from = old[len(line):], from+1
		}
		for _, line := range come {
			added[string(line)] = true
			now, to = now[len(line):], to+1
		}
	}
	return out, !hasAny(after, removed) && !hasAny(before, added)
}

// change returns the fewest lines of two texts before they agree again.
func change(old, now []byte) (gone, come [][]byte, ok bool) {
	a, b := someLines(old), someLines(now)
	for sum := 1; sum <= len(a)+len(b); sum++ {
		for n := max(0, sum-len(b)); n <= min(sum, len(a)); n++ {
			m := sum - n
			switch {
			case n < len(a) && m < len(b):
				ok = bytes.Equal(a[n], b[m])
			case n == len(a) && m == len(b):
				ok = n < near && m < near // both end here
			}
			if ok {
				return a[:n], b[:m], true
			}
		}
	}
	return nil, nil, false
}

// someLines returns the first few lines of a text.
func someLines(text []byte) (lines [][]byte) {
	for len(text) > 0 && len(lines) < near {
		line := firstLine(text)
		lines, text = append(lines, line), text[len(line):]
	}
	return lines
}

// firstLine returns the beginning of a text up to its first newline.
func firstLine(text []byte) []byte {
	if n := bytes.IndexByte(text, '\n'); n >= 0 {
		return text[:n+1]
	}
	return text
}

// hasAny reports whether a text has one of several lines.
func hasAny(text []byte, lines map[string]bool) bool {
	for len(lines) > 0 && len(text) > 0 {
		line := firstLine(text)
		if lines[string(line)] {
			return true
		}
		text = text[len(line):]
	}
	return false
}

var newline = []byte{'\n'}

// commonHead returns the length of the whole lines that both texts begin with, except
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
