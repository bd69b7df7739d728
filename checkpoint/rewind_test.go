package checkpoint

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/stet-dev/stet/internal/testenv"
)

// A rewind and its undo and redo lead to the same trees, also after reopening.
func TestRewindUndoRedo(t *testing.T) {
	f := newFixture(t)
	f.write("a.txt", "one\n", "dir/b.txt", "b\n", "gone.txt", "here\n")
	must(t, os.Symlink("a.txt", f.path("link")))
	first := f.before("c", 1)
	old := testenv.Snapshot(t, f.dir)

	f.write("a.txt", "two\n", "new/deep/c.txt", "c\n", "dir/e.txt", "")
	f.remove("gone.txt")
	f.after("c", 1)
	present := testenv.Snapshot(t, f.dir)

	f.expect(present)
	done := f.rewind(RewindRequest{To: first.ID})
	f.expect(old)
	if done.Files == 0 || done.Saved == nil || done.Operation.Seq != 1 {
		t.Errorf("rewind says %+v", done)
	}
	for range 3 {
		f.reopen()
		if _, err := f.w.Undo(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		f.expect(present)
		f.reopen()
		if _, err := f.w.Redo(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		f.expect(old)
	}
	if _, err := f.w.Redo(t.Context(), nil); !errors.Is(err, ErrNothing) {
		t.Errorf("redo at the end: %v, want ErrNothing", err)
	}
}

// Directories that come and go with their files are not counted.
func TestChangedFilesAreCounted(t *testing.T) {
	f := newFixture(t)
	f.write("a.txt", "one\n", "old/b.txt", "b\n")
	first := f.before("c", 1)
	f.write("a.txt", "two\n", "new/deep/c.txt", "c\n")
	f.remove("old/b.txt")
	must(t, os.Remove(f.path("old")))
	f.after("c", 1)

	done := f.rewind(RewindRequest{To: first.ID})
	if changes := done.Plan.Changes(); changes <= 3 {
		t.Fatalf("%d paths changed, want directories among them", changes)
	}
	if done.Files != 3 || done.Operation.Files != 3 {
		t.Errorf("rewind counts %d files, its operation %d, want 3", done.Files, done.Operation.Files)
	}
	for op, err := range New(f.blobs, f.rows, &f.opts).Operations(t.Context()) {
		if err != nil || op.Files != 3 {
			t.Errorf("the log counts %d files, %v, want 3", op.Files, err)
		}
	}
}

// An undo of a certain operation does not undo another one that came after it.
func TestUndoOfACertainOperation(t *testing.T) {
	f := newFixture(t)
	f.write("a.txt", "one\n")
	first := f.before("c", 1)
	f.write("a.txt", "two\n", "b.txt", "b\n")
	f.after("c", 1)
	seen := f.rewind(RewindRequest{To: first.ID, Paths: []string{"a.txt"}})
	f.rewind(RewindRequest{To: first.ID})
	old := testenv.Snapshot(t, f.dir)

	_, err := f.w.Undo(t.Context(), &UndoOptions{Operation: seen.Operation.Seq})
	if !errors.Is(err, ErrStalePlan) {
		t.Errorf("undo of %s: %v, want ErrStalePlan", seen.Operation.ID(), err)
	}
	f.expect(old)
	if _, err := f.w.Undo(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := f.w.Undo(t.Context(), &UndoOptions{Operation: seen.Operation.Seq}); err != nil {
		t.Errorf("undo of %s, which is the next now: %v", seen.Operation.ID(), err)
	}
}

// Whoever disagrees with the plan finds everything as it was.
func TestRewindThatNobodyAgreesTo(t *testing.T) {
	f := newFixture(t)
	f.write("a.txt", "one\n")
	first := f.before("c", 1)
	f.write("a.txt", "two\n")
	last := f.after("c", 1)
	present := testenv.Snapshot(t, f.dir)
	no := errors.New("no")
	calls := 0
	req := RewindRequest{To: first.ID, Agree: func(_ context.Context, p *Plan) error {
		if calls++; p.Changes() != 1 || p.Token == "" {
			t.Errorf("asked about %d changes with the token %q", p.Changes(), p.Token)
		}
		return no
	}}
	if _, err := f.w.Rewind(t.Context(), req, ""); !errors.Is(err, no) {
		t.Errorf("rewind: %v, want the answer", err)
	}
	f.expect(present)
	if tip, err := f.w.latest(t.Context()); err != nil || tip.ID != last.ID {
		t.Errorf("the last checkpoint is %v, %v; want %s", tip, err, last.ID)
	}
	if _, err := f.w.Plan(t.Context(), req); err != nil || calls != 1 {
		t.Errorf("plan: %v, asked %d times, want once for the rewind", err, calls)
	}
	req.Agree = func(context.Context, *Plan) error { calls++; return nil }
	if f.rewind(req); calls != 2 || f.read("a.txt") != "one\n" {
		t.Errorf("asked %d times, a.txt is %q", calls, f.read("a.txt"))
	}
}
