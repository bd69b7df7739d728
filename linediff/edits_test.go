package linediff_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stet-dev/stet/linediff"
)

func edits(t interface {
	Context() context.Context
	Fatal(...any)
}, before, after []byte) []linediff.Edit {
	out, err := linediff.Edits(t.Context(), before, after)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestEditsMakeOneTextOfTheOther applies the edits between two random texts, of which most
// have long equal beginnings and ends.
func TestEditsMakeOneTextOfTheOther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.SampledFrom([]string{"a\n", "b\n", "}\n", "\n", "a longer line of a text\n", "\x00\xff\n"})
		text := func(name string, most int) []string { return rapid.SliceOfN(line, 0, most).Draw(t, name) }
		var head []string
		for i := range rapid.IntRange(0, 120).Draw(t, "head") {
			head = append(head, fmt.Sprintf("line %d\n", i%50))
		}
		end := rapid.SampledFrom([]string{"", "no newline"}).Draw(t, "end")
		tail := strings.Repeat("}\n", rapid.IntRange(0, 90).Draw(t, "tail")) + end
		before := []byte(strings.Join(head, "") + strings.Join(text("before", 40), "") + tail)
		after := []byte(strings.Join(head, "") + strings.Join(text("after", 40), "") + tail)

		from, to := linediff.Lines(before), linediff.Lines(after)
		var got [][]byte
		at := 0
		for _, e := range edits(t, before, after) {
			if e.From < at || e.FromLen+e.ToLen == 0 {
				t.Fatalf("edit %+v after line %d", e, at)
			}
			got = append(got, from[at:e.From]...)
			if len(got) != e.To {
				t.Fatalf("edit %+v begins at line %d", e, len(got))
			}
			got = append(got, to[e.To:e.To+e.ToLen]...)
			at = e.From + e.FromLen
		}
		got = append(got, from[at:]...)
		if text := bytes.Join(got, nil); !bytes.Equal(text, after) {
			t.Fatalf("got %q, want %q", text, after)
		}
	})
}

// TestEditsAreThoseOfTheDiff compares with the diff that people are shown.
func TestEditsAreThoseOfTheDiff(t *testing.T) {
	var text strings.Builder
	for i := range 500 {
		fmt.Fprintf(&text, "func f%d() {\n\tcall(%d)\n}\n\n", i, i)
	}
	before := text.String()
	after := strings.Replace(before, "func f250() {", "func g() {\n\tcall()\n}\n\nfunc f250() {", 1)
	file, err := linediff.Texts(t.Context(), []byte(before), []byte(after))
	if err != nil {
		t.Fatal(err)
	}
	var added []int
	for _, h := range file.Hunks {
		for _, l := range h.Lines {
			if l.Op == linediff.Insert {
				added = append(added, l.To)
			}
		}
	}
	var got []int
	for _, e := range edits(t, []byte(before), []byte(after)) {
		for i := range e.ToLen {
			got = append(got, e.To+i)
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(added) {
		t.Errorf("edits add lines %v, the diff %v", got, added)
	}
}
