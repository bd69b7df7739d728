package intake_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/intake"
)

func TestSessionBecomesConversation(t *testing.T) {
	f := newFixture(t)
	f.write(toyLine{ID: "t1", Prompt: "one", Reply: "a"}, toyLine{ID: "t2", Prompt: "two", Reply: "b"})
	if r := f.pass(); !r.Created || r.Turns != 2 || r.Conversation != "s1" || r.Bytes == 0 {
		t.Errorf("got %+v", r)
	}
	info, err := f.store.Get(context.Background(), "s1")
	if err != nil || info.Title != "one" || info.Agent != "toy" || info.Workspace != "/ws" || info.Turns != 2 {
		t.Errorf("got %+v, %v", info, err)
	}
	if got := f.texts(); got != "one:a two:b" {
		t.Errorf("got %s", got)
	}
	save, err := f.store.SaveAt(context.Background(), "s1", 2)
	if err != nil || save.MessageID != "t2" || save.Turn.Model != "toy-1" || save.Turn.Input != 10 || save.Turn.Cut != "t2" || !save.Turn.Done {
		t.Errorf("got %+v, %v", save, err)
	}
	f.sameSource()
}

func TestSecondPassAddsOnlyWhatIsNew(t *testing.T) {
	f := newFixture(t)
	for i := range 20 {
		f.write(toyLine{ID: fmt.Sprint("t", i), Prompt: fmt.Sprint("p", i), Reply: "r"})
		if r := f.pass(); r.Turns != 1 || r.Created != (i == 0) {
			t.Fatalf("pass %d: %+v", i, r)
		}
		if r := f.pass(); r.Turns+r.Grown != 0 || r.Bytes != 0 {
			t.Fatalf("pass %d again: %+v", i, r)
		}
	}
	if n := f.saves(); n != 20 {
		t.Errorf("%d saves", n)
	}
	f.sameSource()
}

func TestOpenTurnGrows(t *testing.T) {
	f := newFixture(t)
	f.write(toyLine{ID: "t1", Prompt: "one", Reply: "a"}, toyLine{ID: "t2", Prompt: "two", Reply: "b", Open: true})
	f.pass()
	f.write(toyLine{More: true, Reply: "c", Open: true})
	if r := f.pass(); r.Grown != 1 || r.Turns != 0 {
		t.Errorf("got %+v", r)
	}
	f.write(toyLine{More: true, Reply: "d"}, toyLine{ID: "t3", Prompt: "three"})
	if r := f.pass(); r.Grown != 1 || r.Turns != 1 {
		t.Errorf("got %+v", r)
	}
	if got := f.texts(); got != "one:a two:b:c:d three" {
		t.Errorf("got %s", got)
	}
}

// A turn that was done and grows afterwards is read again from the beginning.
func TestDoneTurnGrows(t *testing.T) {
	f := newFixture(t)
	f.write(toyLine{ID: "t1", Prompt: "one"}, toyLine{ID: "t2", Prompt: "two", Reply: "b"})
	f.pass()
	f.write(toyLine{More: true, Reply: "late"})
	if r := f.pass(); r.Grown != 1 {
		t.Errorf("got %+v", r)
	}
	if got := f.texts(); got != "one two:b:late" {
		t.Errorf("got %s", got)
	}
}

// The progress of a large session is reported while it is copied, and never more than all
// of it.
func TestProgressInsideASession(t *testing.T) {
	f := newFixture(t)
	for i := range 10 {
		f.write(toyLine{ID: fmt.Sprint("t", i), Prompt: strings.Repeat("p", 100), Reply: "r"})
	}
	s := f.session()
	s.Size = 900 // less than what its turns say
	all := func(yield func(foreign.Session, error) bool) { yield(s, nil) }
	var seen []int64
	totals, err := intake.New(f.blobs, f.rows, toy{}).WithBatch(200).Sessions(context.Background(), all, func(t intake.Totals) { seen = append(seen, t.Read) })
	if err != nil || totals.Read != 900 {
		t.Fatalf("got %+v, %v", totals, err)
	}
	if len(seen) < 5 || !slices.IsSorted(seen) || seen[1] == 0 || seen[len(seen)-1] > 900 {
		t.Errorf("saw %v", seen)
	}
}
