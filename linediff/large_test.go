package linediff

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stet-dev/stet/internal/testenv"
)

// apply makes the edits, and fails if what is outside of them differs.
func apply(t interface{ Fatalf(string, ...any) }, before, after []byte, edits []Edit) {
	from, to := Lines(before), Lines(after)
	a, b := 0, 0
	same := func(end int) {
		for ; a < end; a, b = a+1, b+1 {
			if b >= len(to) || !bytes.Equal(from[a], to[b]) {
				t.Fatalf("line %d is not line %d of the new version", a, b)
			}
		}
	}
	for _, e := range edits {
		same(e.From)
		if a != e.From || b != e.To || e.FromLen+e.ToLen == 0 {
			t.Fatalf("edit %+v at lines %d and %d", e, a, b)
		}
		a, b = a+e.FromLen, b+e.ToLen
	}
	same(len(from))
	if b != len(to) {
		t.Fatalf("%d of %d lines of the new version are left", len(to)-b, len(to))
	}
}

// Whatever the texts and however little may be compared exactly, the edits make one version
// of the other.
func TestLongTextsAreComparedCorrectly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.Custom(func(t *rapid.T) string {
			return fmt.Sprintf("%d\n", rapid.IntRange(0, rapid.SampledFrom([]int{3, 30, 300}).Draw(t, "of")).Draw(t, "line"))
		})
		text := func(name string) []byte {
			return []byte(strings.Join(rapid.SliceOfN(line, 0, 200).Draw(t, name), "") + rapid.SampledFrom([]string{"", "end"}).Draw(t, "end"))
		}
		before, after := text("before"), text("after")
		m := &matcher{ctx: context.Background(), area: rapid.SampledFrom([]int{0, 16, 400}).Draw(t, "area"), left: rapid.SampledFrom([]int{0, 1000, 1 << 20}).Draw(t, "left")}
		edits, _, err := m.match(before, after)
		if err != nil {
			t.Fatalf("%v", err)
		}
		apply(t, before, after, edits)
	})
}

// unrelated returns a text of so many lines, drawn from so many different ones.
func unrelated(seed uint64, lines, words int) []byte {
	random := rand.New(rand.NewPCG(seed, 1))
	var out bytes.Buffer
	for range lines {
		fmt.Fprintf(&out, "%x\n", random.IntN(words))
	}
	return out.Bytes()
}

// dying is a context that is done after it was asked so many times.
type dying struct {
	context.Context
	left int
}

func (d *dying) Err() error {
	if d.left--; d.left < 0 {
		return context.Canceled
	}
	return nil
}

func TestComparingHugeTextsIsBoundedAndEnds(t *testing.T) {
	lines := testenv.Sizes(60_000, 500_000, 500_000)
	for _, c := range []struct {
		name   string
		words  int
		coarse bool
	}{
		{"few words", 40, true},
		{"many words", 2 * lines, true},
		{"nothing in common", 1 << 40, false},
	} {
		before, after := unrelated(1, lines, c.words), unrelated(2, lines, c.words)
		m := &matcher{ctx: t.Context(), area: smallArea, left: allAreas}
		begun := time.Now()
		edits, coarse, err := m.match(before, after)
		t.Logf("%s: %v, %d edits, coarse %t, %d%% of the effort", c.name, time.Since(begun), len(edits), coarse, 100*(allAreas-m.left)/allAreas)
		if err != nil || coarse != c.coarse && c.words != 2*lines {
			t.Errorf("%s: coarse %t, %v", c.name, coarse, err)
		}
		apply(t, before, after, edits)
		for _, asked := range []int{0, 1, 10, 20} {
			if _, err := Texts(&dying{t.Context(), asked}, before, after); !errors.Is(err, context.Canceled) {
				t.Errorf("%s: a context that ends after %d looks: %v", c.name, asked, err)
			}
		}
	}
}

// A few changes of a long text are found exactly, whatever repeats in it.
func TestSmallChangesOfLongTexts(t *testing.T) {
	var lines []string
	for i := range 40_000 {
		lines = append(lines, fmt.Sprintf("\tcall(%d)\n", i%5000), "}\n")
	}
	before := strings.Join(lines, "")
	lines[100], lines[40_000] = "changed\n", "changed too\n"
	lines = append(lines[:70_000], lines[70_002:]...)
	file, err := Texts(t.Context(), []byte(before), []byte(strings.Join(lines, "")))
	if err != nil || file.Coarse || file.Added != 2 || file.Removed != 4 || len(file.Hunks) != 3 {
		t.Errorf("+%d -%d in %d hunks, coarse %t: %v", file.Added, file.Removed, len(file.Hunks), file.Coarse, err)
	}
}
