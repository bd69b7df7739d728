package supervise

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
)

// watchNow watches a new directory with a subdirectory, and takes the first hint.
func watchNow(t *testing.T) *watcher {
	t.Helper()
	before := unwatched
	unwatched = 0
	t.Cleanup(func() { unwatched = before })
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	w := watchTree(dir, time.Millisecond)
	t.Cleanup(w.close)
	<-w.hints
	if paths := w.take(); paths != nil {
		t.Fatalf("the first hint has the paths %q, but what came before is not known", paths)
	}
	return w
}

func (w *watcher) write(t *testing.T, name string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(w.root, name), []byte(name), 0o644); err != nil {
		t.Fatal(err)
	}
}

// until takes hints until one has a path.
func (w *watcher) until(t *testing.T, path string) {
	t.Helper()
	for {
		<-w.hints
		paths := w.take()
		if paths == nil {
			t.Fatalf("no paths are known; want %s", path)
		}
		if slices.Contains(paths, path) {
			return
		}
	}
}

func TestHintsNamePaths(t *testing.T) {
	w := watchNow(t)
	w.write(t, "sub/a")
	w.until(t, "sub/a")
	if err := os.MkdirAll(filepath.Join(w.root, "new/deep"), 0o755); err != nil {
		t.Fatal(err)
	}
	w.until(t, "new") // with everything in it
	w.write(t, "new/b")
	w.until(t, "new/b")
	if err := os.Remove(filepath.Join(w.root, "sub/a")); err != nil {
		t.Fatal(err)
	}
	w.until(t, "sub/a")
}

// Whoever gets no paths looks at everything.
func TestLostEventsLeavePathsUnknown(t *testing.T) {
	w := watchNow(t)
	w.events.Errors <- fsnotify.ErrEventOverflow
	w.write(t, "a")
	for range 3 { // each hint from now on
		<-w.hints
		if paths := w.take(); paths != nil {
			t.Errorf("paths %q after events were lost", paths)
		}
	}
}

func TestManyChangesLeavePathsUnknown(t *testing.T) {
	w := &watcher{root: t.TempDir(), changed: map[string]bool{}}
	for i := range maxChanged + 1 {
		w.noted(fsnotify.Event{Name: filepath.Join(w.root, fmt.Sprint(i)), Op: fsnotify.Write})
		if i == maxChanged-1 && w.unknown {
			t.Errorf("unknown after %d paths", i+1)
		}
	}
	if paths := w.take(); paths != nil {
		t.Errorf("%d paths of %d", len(paths), maxChanged+1)
	}
	w.noted(fsnotify.Event{Name: filepath.Join(w.root, "a"), Op: fsnotify.Write})
	if paths := w.take(); !slices.Equal(paths, []string{"a"}) {
		t.Errorf("paths %q after that, want a", paths)
	}
}

// The events of a directory may have its former name.
func TestRenamedDirectoryLeavesPathsUnknown(t *testing.T) {
	w := watchNow(t)
	if err := os.Rename(filepath.Join(w.root, "sub"), filepath.Join(w.root, "moved")); err != nil {
		t.Fatal(err)
	}
	<-w.hints
	if paths := w.take(); paths != nil {
		t.Errorf("paths %q", paths)
	}
}

// A command that ends at once is not worth a watch.
func TestShortCommandsAreNotWatched(t *testing.T) {
	before := unwatched
	unwatched = time.Hour
	defer func() { unwatched = before }()
	w := watchTree(filepath.Join(t.TempDir(), "missing"), time.Millisecond)
	w.close()
	if w.events != nil || len(w.hints) > 0 {
		t.Error("it is watched")
	}
}
