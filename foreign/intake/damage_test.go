package intake_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/foreign/internal/jsonl"
	"github.com/stet-dev/stet/internal/testenv"
)

func TestGarbageAndTornLines(t *testing.T) {
	f := newFixture(t)
	f.write(toyLine{ID: "t1", Prompt: "one"})
	file, _ := os.OpenFile(f.path, os.O_APPEND|os.O_WRONLY, 0)
	file.WriteString("garbage\n[0" + strings.Repeat(",1", jsonl.MaxLine/2) + "]\n")
	file.Close()
	f.write(toyLine{ID: "t2", Prompt: "two"})
	file, _ = os.OpenFile(f.path, os.O_APPEND|os.O_WRONLY, 0)
	file.WriteString(`{"ID":"t3","Pro`)
	file.Close()
	r := f.pass()
	if r.Turns != 2 || len(r.Unreadable) != 2 || f.texts() != "one two" {
		t.Errorf("got %+v, %s", r, f.texts())
	}
	f.sameSource()
}

// TestDamageIsNamedAgain checks that a pass which continues behind a damaged part names it, too,
// until the session is read as a whole again.
func TestDamageIsNamedAgain(t *testing.T) {
	f := newFixture(t)
	garbage := func() {
		file, _ := os.OpenFile(f.path, os.O_APPEND|os.O_WRONLY, 0)
		file.WriteString("garbage\n")
		file.Close()
	}
	f.write(toyLine{ID: "t1", Prompt: "one"})
	garbage()
	f.write(toyLine{ID: "t2", Prompt: "two"})
	first := f.pass()
	if len(first.Unreadable) != 1 || len(first.Passed) != 0 {
		t.Fatalf("the first pass: %+v", first)
	}
	for range 2 {
		if r := f.pass(); len(r.Unreadable) != 0 || len(r.Passed) != 1 || r.Passed[0] != first.Unreadable[0].Error() {
			t.Fatalf("a second pass: %+v", r)
		}
	}
	garbage() // with nothing behind it
	for range 2 {
		if r := f.pass(); len(r.Unreadable) != 1 || len(r.Passed) != 1 {
			t.Fatalf("more damage: %+v", r)
		}
	}
	f.write(toyLine{ID: "t3", Prompt: "three"})
	f.pass()
	if r := f.pass(); len(r.Unreadable) != 0 || len(r.Passed) != 2 {
		t.Fatalf("a turn behind it: %+v", r)
	}
	os.Remove(f.path)
	f.write(toyLine{ID: "t1", Prompt: "one"}, toyLine{ID: "t2", Prompt: "two"})
	f.pass()
	if r := f.pass(); len(r.Unreadable)+len(r.Passed) != 0 {
		t.Errorf("a whole session: %+v", r)
	}
}

func TestSessionsThatAreLeftAlone(t *testing.T) {
	ctx := context.Background()
	f := newFixture(t)
	f.write()
	if r := f.pass(); r.Skipped == "" || r.Conversation != "" {
		t.Errorf("an empty session: %+v", r)
	}
	f.write(toyLine{ID: "t1", Prompt: "one"})
	if _, err := f.store.Create(ctx, conversation.Info{ID: "s1"}); err != nil {
		t.Fatal(err)
	}
	if r := f.pass(); !strings.Contains(r.Skipped, "elsewhere") {
		t.Errorf("another conversation: %+v", r)
	}
	f.id = "s2"
	f.pass()
	c, err := f.store.Open(ctx, "s2")
	if err != nil {
		t.Fatal(err)
	}
	turn, _ := conversation.NewTurn(nil)
	if _, err := c.Save(ctx, nil); err != nil || c.AppendTurn(ctx, turn) != nil {
		t.Fatal(err)
	}
	if _, err := c.Save(ctx, nil); err != nil {
		t.Fatal(err)
	}
	f.write(toyLine{ID: "t2", Prompt: "two"})
	if r := f.pass(); !strings.Contains(r.Skipped, "continued here") {
		t.Errorf("continued: %+v", r)
	}
}

// What is not UTF-8, in the words and in the path of a session, becomes text that can be
// stored; the raw record has the bytes.
func TestBytesThatAreNotUTF8(t *testing.T) {
	f := newFixture(t)
	f.path = filepath.Join(filepath.Dir(f.path), "caf\xe9.jsonl")
	line := `{"ID":"t1","Prompt":"caf` + "\xe9" + `","Reply":"` + "\xff\xfe" + `"}` + "\n"
	if err := os.WriteFile(f.path, []byte(line), 0o600); err != nil {
		t.Skip(err) // file systems that have no such names
	}
	if r := f.pass(); r.Turns != 1 || r.Unreadable != nil {
		t.Fatalf("got %+v", r)
	}
	if got := f.texts(); got != "caf\uFFFD:\uFFFD\uFFFD" {
		t.Errorf("got %q", got)
	}
	f.sameSource()
	if r := f.pass(); r.Turns+r.Grown != 0 || r.Bytes != 0 {
		t.Errorf("again: %+v", r)
	}
}

// A text that is too long for a turn is shortened there, and the raw record has all of it.
func TestLongLines(t *testing.T) {
	sizes := []int{jsonl.LongLine, 5 * jsonl.LongLine}
	if testenv.Long() {
		sizes = append(sizes, 100<<20)
	}
	for _, size := range sizes {
		f := newFixture(t)
		f.write(toyLine{ID: "t1", Prompt: "one"}, toyLine{ID: "t2", Prompt: "two", Reply: strings.Repeat("long ", size/5)}, toyLine{ID: "t3", Prompt: "three"})
		if r := f.pass(); r.Turns != 3 || r.Unreadable != nil {
			t.Fatalf("got %+v", r)
		}
		got := f.texts()
		if !strings.HasPrefix(got, "one two:long long ") || !strings.HasSuffix(got, " bytes more in the original record] three") || len(got) > 1<<20 {
			t.Errorf("%d bytes of text: %.40s … %s", len(got), got, got[max(0, len(got)-60):])
		}
		f.sameSource()
		if r := f.pass(); r.Turns+r.Grown != 0 || r.Bytes != 0 {
			t.Errorf("again: %+v", r)
		}
	}
}
