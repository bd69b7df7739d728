package intake_test

import (
	"context"
	"iter"
	"testing"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/intake"
)

// meeting is an agent whose session is copied by another process while this one reads it.
type meeting struct {
	toy
	other func()
}

func (m meeting) Turns(ctx context.Context, s foreign.Session, from foreign.Mark) iter.Seq2[foreign.Turn, error] {
	m.other()
	return m.toy.Turns(ctx, s, from)
}

// Two hooks at once copy each turn once.
func TestTwoProcessesCopyOneSession(t *testing.T) {
	f := newFixture(t)
	f.write(toyLine{ID: "t1", Prompt: "one"})
	f.pass()
	f.write(toyLine{ID: "t2", Prompt: "two"})
	met := false
	m := intake.New(f.blobs, f.rows, meeting{other: func() {
		if !met {
			met = true
			f.pass()
		}
	}})
	if _, err := m.Session(context.Background(), f.session()); err != nil {
		t.Fatal(err)
	}
	if got := f.texts(); got != "one two" {
		t.Errorf("got %s", got)
	}
}
