package checkpoint

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/internal/testenv"
)

// stateBlob stores a state that a checkpoint can refer to.
func (f *fixture) stateBlob(text string) blob.ID {
	f.t.Helper()
	b := blob.New([]byte(text))
	must(f.t, f.blobs.Put(f.t.Context(), b))
	return b.ID
}

func (f *fixture) record(id string) *Record {
	f.t.Helper()
	rec, err := f.w.s.Get(f.t.Context(), id)
	must(f.t, err)
	return rec
}

// recordsDiffer compares two checkpoints in everything that is stored.
func recordsDiffer(want, got *Record) string {
	return cmp.Diff(want, got, cmp.AllowUnexported(Record{}), cmpopts.IgnoreFields(Record{}, "version"),
		cmpopts.EquateEmpty(), cmpopts.EquateApproxTime(time.Millisecond))
}

// Only the state and its message change, also if it is set again.
func TestSetState(t *testing.T) {
	f := newFixture(t)
	f.write("a", "1")
	f.before("c", 1)
	f.write("a", "2")
	rec := f.after("c", 1)
	for _, message := range []string{"m1", "m1", "m2"} {
		root := f.stateBlob(message)
		must(t, f.w.SetState(t.Context(), rec.ID, root, message))
		want := *rec
		want.Root, want.MessageID = root, message
		if d := recordsDiffer(&want, f.record(rec.ID)); d != "" {
			t.Errorf("%s (-want +got):\n%s", message, d)
		}
	}
}

func TestSetStateRefuses(t *testing.T) {
	f := newFixture(t)
	f.write("a", "1")
	rec := f.after("c", 1)
	root := f.stateBlob("state")
	other, err := New(f.blobs, f.rows, &f.opts).Open(t.Context(), testenv.TempDir(t))
	must(t, err)
	defer other.Close()
	if err := other.SetState(t.Context(), rec.ID, root, "m"); !errors.Is(err, ErrNotFound) {
		t.Errorf("from another workspace: %v", err)
	}
	if err := f.w.SetState(t.Context(), "c99", root, "m"); !errors.Is(err, ErrNotFound) {
		t.Errorf("of no checkpoint: %v", err)
	}
	if err := f.w.SetState(t.Context(), rec.ID, blob.Sum([]byte("never stored")), "m"); err == nil {
		t.Error("a state that is not stored was accepted")
	}
	if d := recordsDiffer(rec, f.record(rec.ID)); d != "" {
		t.Errorf("the checkpoint changed:\n%s", d)
	}
}

// Writers at once, each as a process of its own, some of which take checkpoints: no
// checkpoint is lost, the last state stands, and nothing but states changes.
func TestSetStateAtOnce(t *testing.T) {
	f := newFixture(t)
	f.write("a", "1")
	rec := f.after("c", 1)
	const writers = 8
	states := map[blob.ID]string{}
	for i := range writers {
		message := fmt.Sprint("m", i)
		states[f.stateBlob(message)] = message
	}
	var wg sync.WaitGroup
	for root, message := range states {
		w, err := New(f.blobs, f.rows, &f.opts).Open(t.Context(), f.dir)
		must(t, err)
		wg.Go(func() {
			defer w.Close()
			if err := w.SetState(t.Context(), rec.ID, root, message); err != nil {
				t.Error(err)
			}
			if _, err := w.Checkpoint(t.Context(), Request{Conversation: "c", Label: message}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	got := f.record(rec.ID)
	if message, ok := states[got.Root]; !ok || message != got.MessageID {
		t.Errorf("state %s with message %q", got.Root.Short(), got.MessageID)
	}
	want := *rec
	want.Root, want.MessageID = got.Root, got.MessageID
	if d := recordsDiffer(&want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	n := 0
	for _, err := range f.w.List(t.Context(), nil) {
		must(t, err)
		n++
	}
	if n != writers+1 {
		t.Errorf("%d checkpoints, want %d", n, writers+1)
	}
}

// A crash before the commit changes nothing, one after it everything, and the same call
// again brings both to the same end.
func TestSetStateCrash(t *testing.T) {
	crash := errors.New("crash")
	for _, committed := range []bool{false, true} {
		f := newFixture(t)
		f.write("a", "1")
		rec := f.after("c", 1)
		root := f.stateBlob("state")
		x := &faults{Store: f.rows}
		if committed {
			x.lost = func(int) error { return crash }
		} else {
			x.fail = func(int, string) error { return crash }
		}
		w, err := New(f.blobs, x, &f.opts).Open(t.Context(), f.dir)
		must(t, err)
		if err := w.SetState(t.Context(), rec.ID, root, "m"); !errors.Is(err, crash) {
			t.Errorf("committed %v: %v", committed, err)
		}
		must(t, w.Close())
		f.reopen()
		if got := f.record(rec.ID); (got.Root == root) != committed || (got.MessageID == "m") != committed || got.Tree != rec.Tree {
			t.Errorf("committed %v: %+v", committed, got)
		}
		must(t, f.w.SetState(t.Context(), rec.ID, root, "m"))
		if got := f.record(rec.ID); got.Root != root || got.MessageID != "m" {
			t.Errorf("committed %v, again: %+v", committed, got)
		}
	}
}
