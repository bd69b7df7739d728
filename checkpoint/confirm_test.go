//go:build unix

package checkpoint

import (
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/workspace"
)

// What a rewind or an undo is about to replace or delete is read first: a change that
// moved no stamp is the user's, as any other.
func TestChangesWithoutAStamp(t *testing.T) {
	for _, name := range []string{"replaced", "made"} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.write("replaced", "old!\n", "other", "old!\n")
			c1 := f.before("c", 1)
			f.write("replaced", "new!\n", "other", "new!\n", "made", "new!\n")
			f.after("c", 1)
			stale := f.plan(RewindRequest{To: c1.ID})
			f.hide(name, "new!\n", "mine\n")
			p := f.plan(RewindRequest{To: c1.ID})
			if got := p.Conflicts(); !slices.Equal(got, []string{name}) {
				t.Errorf("conflicts %v, want %s", got, name)
			}
			f.hide(name, "new!\n", "mine\n")
			if _, err := f.w.Rewind(t.Context(), stale.Request(), stale.Token); !errors.Is(err, ErrStalePlan) {
				t.Errorf("apply a plan of before: %v", err)
			}
			f.hide(name, "new!\n", "mine\n")
			done := f.rewind(RewindRequest{To: c1.ID, Choice: Theirs})
			saved, err := workspace.Lookup(t.Context(), f.blobs, done.Saved.Tree, name)
			must(t, err)
			if saved.ID != blob.Sum([]byte("mine\n")) {
				t.Error("the checkpoint of the present does not have what was replaced")
			}
			if got := f.read("other"); got != "old!\n" {
				t.Errorf("other is %q", got)
			}
			if name == "replaced" {
				f.hide(name, "old!\n", "more\n")
				_, err = f.w.Undo(t.Context(), nil)
				var conflict *ConflictError
				if !errors.As(err, &conflict) {
					t.Errorf("undo over a change: %v", err)
				}
				if got := f.read(name); got != "more\n" {
					t.Errorf("%s is %q", name, got)
				}
			}
		})
	}
}

// A store through a mapping, to a page that is dirty already, moves no stamp. One
// that comes during a rewind is noticed before the old file goes.
func TestStoresDuringARewind(t *testing.T) {
	for _, name := range []string{"replaced", "made"} {
		for _, when := range []string{"create", "swap", "install", "fsync"} {
			t.Run(name+" "+when, func(t *testing.T) {
				f := newFixture(t)
				f.write("replaced", "old!\n", "gone", "old!\n")
				c1 := f.before("c", 1)
				f.write("replaced", "new!\n", "made", "new!\n")
				f.remove("gone")
				file, err := os.OpenFile(f.path(name), os.O_RDWR, 0)
				must(t, err)
				m, err := unix.Mmap(int(file.Fd()), 0, 5, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
				must(t, err)
				defer unix.Munmap(m)
				must(t, file.Close())
				m[0] = 'N'
				f.after("c", 1)
				var store sync.Once // files are staged side by side
				stored := false
				f.opts.hook = func(call, _ string) error {
					if call == when {
						store.Do(func() { m[0], stored = 'M', true })
					}
					return nil
				}
				f.reopen()
				_, err = f.w.Rewind(t.Context(), RewindRequest{To: c1.ID}, "")
				if !errors.Is(err, ErrChanged) || !errors.Is(err, ErrRolledBack) || !stored {
					t.Fatalf("got %v, stored: %v", err, stored)
				}
				if got := f.read(name); !strings.HasPrefix(got, "M") {
					t.Errorf("%s is %q", name, got)
				}
			})
		}
	}
}
