package compressed

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestOccurring compares with looking for each piece by itself, in texts of few
// letters, where pieces overlap and come several times.
func TestOccurring(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		text := make([]byte, rnd.IntN(400))
		for i := range text {
			text[i] = "ab"[rnd.IntN(2)*rnd.IntN(2)]
		}
		pieces := make([][]byte, 1+rnd.IntN(16))
		want := 0
		for i := range pieces {
			pieces[i] = bytes.Repeat([]byte("a"), piece)
			if rnd.IntN(3) > 0 && len(text) >= piece {
				at := rnd.IntN(len(text) - piece + 1)
				copy(pieces[i], text[at:])
			}
			if rnd.IntN(2) == 0 {
				pieces[i][rnd.IntN(piece)] ^= 1
			}
			if bytes.Contains(text, pieces[i]) {
				want++
			}
		}
		if got := occurring(text, pieces, len(pieces)); got != want {
			t.Fatalf("found %d of %q in %q, want %d", got, pieces, text, want)
		}
		if got := occurring(text, pieces, 2); got != min(want, 2) && want > 0 {
			t.Fatalf("found %d of %q in %q, want up to 2 of %d", got, pieces, text, want)
		}
	}
}

func TestAlike(t *testing.T) {
	for _, lines := range []int{30, 300, 3000} { // within one look, and around each place
		one, other := lined(1, lines), lined(2, lines)
		cases := map[string]struct {
			literal []byte
			want    bool
		}{
			"the same":      {one, true},
			"another":       {other, false},
			"half":          {append(bytes.Clone(one[:len(one)/2]), other[len(other)/2:]...), true},
			"a little":      {append(bytes.Clone(one[:len(one)/10]), other[len(other)/10:]...), false},
			"a line before": {append([]byte("package compressed\n"), one...), true},
			"too short":     {one[:100], false},
		}
		for name, c := range cases {
			if got := alike(one, c.literal); got != c.want {
				t.Errorf("%s, %d lines: alike is %t", name, lines, got)
			}
		}
	}
}

// lined returns a text that shares phrases with others, but no line.
func lined(seed, lines int) (out []byte) {
	for i := range lines {
		n := i*7919 + seed*50021
		out = fmt.Appendf(out, "\tif a%05d := b%05d(ctx); c%05d {\n", n%100003, n%99991, n%99989)
	}
	return out
}

// BenchmarkAlike compares texts of the size of a source file that are not alike,
// the dearest case: never is enough found.
func BenchmarkAlike(b *testing.B) {
	one, other := lined(1, 100), lined(2, 100)
	b.SetBytes(int64(len(one)))
	for b.Loop() {
		if alike(one, other) {
			b.Fatal("alike")
		}
	}
}
