package checkpoint

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stet-dev/stet/internal/testenv"
)

// swapper lets a directory and a link to another place trade places, over and
// over, until it is stopped.
func swapper(t *testing.T, dir, outside string) (stop func()) {
	t.Helper()
	link := filepath.Join(filepath.Dir(dir), ".git", "link") // where nothing is captured
	must(t, os.MkdirAll(filepath.Dir(link), 0o755))
	must(t, os.Symlink(outside, link))
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for turns := 0; ; turns++ {
			select {
			case <-done:
				if turns%2 == 0 {
					return
				}
			default:
			}
			err := unix.Renameat2(unix.AT_FDCWD, dir, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE)
			if errors.Is(err, unix.ENOENT) { // a rewind replaces the link, and has moved it aside
				select {
				case <-done:
					return
				default:
				}
				turns--
			} else if err != nil {
				t.Error(err)
				return
			}
			runtime.Gosched()
		}
	})
	return func() { close(done); wg.Wait() }
}

// Whole rewinds with a directory that comes and goes: each succeeds or changes
// nothing for good, and nothing outside changes.
func TestRacedRewinds(t *testing.T) {
	f := newFixture(t)
	outside := testenv.TempDir(t)
	for i := range 10 {
		f.write(fmt.Sprintf("d/e/f%d", i), "old\n")
		must(t, os.MkdirAll(filepath.Join(outside, "e"), 0o755))
		must(t, os.WriteFile(filepath.Join(outside, "e", fmt.Sprintf("f%d", i)), []byte("outside\n"), 0o644))
	}
	must(t, os.WriteFile(filepath.Join(outside, "e", "made"), []byte("outside\n"), 0o644))
	want := testenv.Snapshot(t, outside)
	c1 := f.before("c", 1)
	for i := range 10 {
		f.write(fmt.Sprintf("d/e/f%d", i), "new\n")
	}
	f.write("d/e/made", "made\n")
	f.after("c", 1)
	stop := swapper(t, f.path("d"), outside)
	done, refused := 0, 0
	for i := range testenv.Scale(150, 5000) {
		var err error
		if i%2 == 0 {
			_, err = f.w.Rewind(t.Context(), RewindRequest{To: c1.ID, Choice: Theirs}, "")
		} else {
			_, err = f.w.Undo(t.Context(), &UndoOptions{Choice: Theirs})
		}
		if err == nil {
			done++
		} else {
			refused++
		}
		// While the directory is a link, a rewind that ended in between cannot be
		// taken back; the workspace opens when it is back, and nothing is lost.
		for tries := 0; ; tries++ {
			err := f.tryReopen()
			if err == nil {
				break
			}
			if !errors.Is(err, ErrInterrupted) || tries == 10_000 {
				stop()
				t.Fatal(err)
			}
		}
	}
	stop()
	f.reopen()
	if diff := testenv.Differ(testenv.Snapshot(t, outside), want); len(diff) > 0 {
		t.Errorf("the outside changed: %v", diff)
	}
	for name := range testenv.Snapshot(t, f.dir) {
		if strings.HasPrefix(name, ".stet-") {
			t.Errorf("%s was left", name)
		}
	}
	t.Logf("%d rewinds succeeded, %d were refused", done, refused)
}
