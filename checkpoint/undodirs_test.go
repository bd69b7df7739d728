package checkpoint

import (
	"errors"
	"os"
	"testing"

	"github.com/stet-dev/stet/internal/testenv"
)

// An undo works although the directory of what it brings back is gone or has been
// replaced since.
func TestUndoWithoutTheDirectory(t *testing.T) {
	rewound := func(t *testing.T) (*fixture, map[string]string) {
		f := newFixture(t)
		f.write("d/sub/a", "1\n", "d/b", "2\n", "README", "3\n")
		must(t, os.Chmod(f.path("d"), 0o750))
		c1 := f.before("c", 1)
		f.write("d/sub/a", "agent's\n", "d/sub/new", "agent's\n")
		f.after("c", 1)
		want := testenv.Snapshot(t, f.dir)
		f.rewind(RewindRequest{To: c1.ID})
		return f, want
	}
	t.Run("gone", func(t *testing.T) {
		for choice, came := range map[Choice][]string{Theirs: {"d", "d/sub", "d/sub/a", "d/sub/new"}, KeepMine: {"d", "d/sub", "d/sub/new"}} {
			f, want := rewound(t)
			f.remove("d")
			if err := undo(f); !errors.Is(err, ErrConflict) {
				t.Errorf("without a choice: %v, want ErrConflict", err)
			}
			_, err := f.w.Undo(t.Context(), &UndoOptions{Choice: choice})
			must(t, err)
			expect := map[string]string{"README": want["README"]}
			for _, name := range came {
				expect[name] = want[name]
			}
			f.expect(expect)
		}
	})
	t.Run("replaced by a file", func(t *testing.T) {
		f, _ := rewound(t)
		f.remove("d/sub")
		f.write("d/sub", "mine\n")
		if err := undo(f); !errors.Is(err, ErrConflict) {
			t.Errorf("without a choice: %v, want ErrConflict", err)
		}
		_, err := f.w.Undo(t.Context(), &UndoOptions{Choice: KeepMine})
		must(t, err)
		if got := f.read("d/sub"); got != "mine\n" {
			t.Errorf("d/sub is %q", got)
		}
		f, want := rewound(t)
		f.remove("d/sub")
		f.write("d/sub", "mine\n")
		done, err := f.w.Undo(t.Context(), &UndoOptions{Choice: Theirs})
		must(t, err)
		f.expect(want)
		if e, err := lookup(t.Context(), f.blobs, done.Saved.Tree, "d/sub"); err != nil || !isFile(e) {
			t.Errorf("saved: %v, %v, want the file that gave way", e, err)
		}
	})
	t.Run("replaced by a link", func(t *testing.T) {
		if !testenv.Links(t) {
			t.Skip("links cannot be made here")
		}
		f, want := rewound(t)
		outside := testenv.TempDir(t)
		f.remove("d")
		must(t, os.Symlink(outside, f.path("d")))
		if err := undo(f); !errors.Is(err, ErrConflict) {
			t.Errorf("without a choice: %v, want ErrConflict", err)
		}
		_, err := f.w.Undo(t.Context(), &UndoOptions{Choice: Theirs})
		must(t, err)
		expect := map[string]string{"README": want["README"]}
		for _, name := range []string{"d", "d/sub", "d/sub/a", "d/sub/new"} {
			expect[name] = want[name]
		}
		f.expect(expect)
		if got := testenv.Snapshot(t, outside); len(got) > 0 {
			t.Errorf("outside: %v", got)
		}
	})
}
