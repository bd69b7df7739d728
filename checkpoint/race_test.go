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

// An editor that saves while a rewind is under way loses nothing: its version
// stands, and the rewind is taken back.
func TestEditorSavesMeanwhile(t *testing.T) {
	f := newFixture(t)
	f.write("a", "old a\n", "b", "old b\n", "c", "old c\n")
	c1 := f.before("c", 1)
	f.write("a", "new a\n", "b", "new b\n", "c", "new c\n")
	f.after("c", 1)
	for _, how := range []string{"in place", "by rename", "deleted"} {
		saved := false
		f.opts.hook = func(call, path string) error {
			if call == "swap" && path == "b" && !saved {
				saved = true
				switch how {
				case "in place":
					f.write("b", "the editor's b\n")
				case "by rename":
					f.write("b.tmp", "the editor's b\n")
					must(t, os.Rename(f.path("b.tmp"), f.path("b")))
				case "deleted":
					f.remove("b")
				}
			}
			return nil
		}
		f.reopen()
		_, err := f.w.Rewind(t.Context(), RewindRequest{To: c1.ID}, "")
		if !errors.Is(err, ErrChanged) || !errors.Is(err, ErrRolledBack) {
			t.Fatalf("%s: %v", how, err)
		}
		if f.read("a") != "new a\n" || f.read("c") != "new c\n" {
			t.Errorf("%s: the rewind was not taken back", how)
		}
		if how != "deleted" && f.read("b") != "the editor's b\n" {
			t.Errorf("%s: b is %q", how, f.read("b"))
		}
		f.opts.hook = nil
		f.reopen()
		f.write("b", "new b\n")
	}
}

// A program that has a file open goes on writing to it after its name has gone, and
// one that works in a directory goes on making files there. What it wrote during
// the rewind stands.
func TestOpenFilesAreWrittenMeanwhile(t *testing.T) {
	for _, how := range []string{"replaced", "removed", "directory"} {
		t.Run(how, func(t *testing.T) {
			f := newFixture(t)
			f.write("replaced", "old\n", "other", "old\n")
			c1 := f.before("c", 1)
			f.write("replaced", "new\n", "other", "new\n", "removed", "new\n")
			must(t, os.Mkdir(f.path("directory"), 0o755))
			f.after("c", 1)
			open, err := os.OpenRoot(f.path("directory"))
			must(t, err)
			defer open.Close()
			log := f.path("directory/log")
			if how != "directory" {
				log = f.path(how)
			}
			file := func() (*os.File, error) { return open.Create("log") }
			if how != "directory" {
				held, err := os.OpenFile(log, os.O_WRONLY|os.O_APPEND, 0)
				must(t, err)
				file = func() (*os.File, error) { return held, nil }
			}
			var mu sync.Mutex // directories are synced side by side
			wrote, steps := false, false
			f.opts.hook = func(call, _ string) error {
				mu.Lock()
				defer mu.Unlock()
				steps = steps || call == "swap" || call == "remove"
				if steps && call == "fsync" && !wrote { // after the last step
					wrote = true
					w, err := file()
					if err == nil {
						_, err = w.WriteString("more\n")
					}
					return errors.Join(err, w.Close())
				}
				return nil
			}
			f.reopen()
			_, err = f.w.Rewind(t.Context(), RewindRequest{To: c1.ID}, "")
			if !errors.Is(err, ErrChanged) || !errors.Is(err, ErrRolledBack) || !wrote {
				t.Fatalf("got %v, wrote %v", err, wrote)
			}
			if got, err := os.ReadFile(log); err != nil || !strings.HasSuffix(string(got), "more\n") {
				t.Errorf("%s is %q, %v", log, got, err)
			}
			if got := f.read("other"); got != "new\n" {
				t.Errorf("other is %q", got)
			}
		})
	}
}
