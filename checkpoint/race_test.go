package checkpoint

import (
	"errors"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stet-dev/stet/internal/osfile"
)

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
			refused := errors.Is(err, ErrChanged) || errors.Is(err, osfile.ErrInUse) // the second on Windows, for files and directories that are open
			if !refused || !errors.Is(err, ErrRolledBack) || !wrote {
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
