package checkpoint

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stet-dev/stet/internal/testenv"
)

// The checkpoints of a directory that was renamed are found by its inode and follow
// it, with what can be undone.
func TestMove(t *testing.T) {
	f := newFixture(t)
	f.write("a", "1\n")
	c1 := f.before("c", 1)
	f.write("a", "2\n")
	f.after("c", 1)
	f.rewind(RewindRequest{To: c1.ID})
	service, old := New(f.blobs, f.rows, &f.opts), f.dir
	moved := filepath.Join(testenv.TempDir(t), "moved")
	if _, err := service.Move(t.Context(), old, filepath.Dir(moved), false); !errors.Is(err, ErrInPlace) {
		t.Errorf("while it is there: %v, want ErrInPlace", err)
	}
	must(t, os.Rename(old, moved))
	t.Cleanup(func() { must(t, os.MkdirAll(old, 0o755)) })
	former, err := service.FormerPath(t.Context(), moved)
	if err != nil || former != old {
		t.Errorf("it was %q, %v, want %q", former, err, old)
	}
	got, err := service.Move(t.Context(), old, moved, false)
	must(t, err)
	if got.Checkpoints != 4 || got.Exchanged != 0 {
		t.Errorf("moved: %+v, want 4 checkpoints", got)
	}
	if former, err = service.FormerPath(t.Context(), moved); former != "" || err != nil {
		t.Errorf("afterwards it was %q, %v", former, err)
	}
	f.dir = moved
	f.reopen()
	must(t, undo(f))
	if got := f.read("a"); got != "2\n" {
		t.Errorf("after undo a is %q", got)
	}
	f.rewind(RewindRequest{To: "c1"})
	if got := f.read("a"); got != "1\n" {
		t.Errorf("after rewind a is %q", got)
	}
	if _, err := service.Move(t.Context(), old, moved, true); !errors.Is(err, ErrNotFound) {
		t.Errorf("again: %v, want ErrNotFound", err)
	}

	// Two histories change places, and only with force.
	other := newFixture(t)
	other.blobs, other.rows, other.opts, other.memory = f.blobs, f.rows, f.opts, nil
	other.reopen()
	other.write("b", "1\n")
	mine := other.save(Request{})
	if _, err := service.Move(t.Context(), moved, other.dir, false); !errors.Is(err, ErrInPlace) {
		t.Errorf("onto a history: %v, want ErrInPlace", err)
	}
	got, err = service.Move(t.Context(), moved, other.dir, true)
	must(t, err)
	if got.Exchanged != 1 {
		t.Errorf("exchanged: %+v, want 1 checkpoint", got)
	}
	f.reopen()
	if rec, err := f.w.Resolve(t.Context(), "c1", ""); err != nil || rec.ID != mine.ID {
		t.Errorf("c1 of the first: %v, %v, want %s", rec, err, mine.ID)
	}
}
