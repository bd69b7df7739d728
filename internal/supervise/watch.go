package supervise

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/stet-dev/stet/workspace"
)

// maxWatched limits the watched directories, because watches are a limited system
// resource.
const maxWatched = 4096

// watcher signals when changes in a tree have stopped. It only gives hints: the next
// scan finds what it misses, and if it cannot watch everything it gives periodic
// hints.
type watcher struct {
	hints   chan struct{} // holds at most one hint
	events  *fsnotify.Watcher
	watched int
	partial bool
	quit    chan struct{}
	done    chan struct{}
}

// watchTree watches a directory and everything below it, except git's files and ours.
func watchTree(root string, pause time.Duration) *watcher {
	w := &watcher{hints: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{})}
	var err error
	if w.events, err = fsnotify.NewWatcher(); err != nil {
		w.events, w.partial = nil, true
	} else {
		w.add(root)
	}
	go w.follow(max(pause, 50*time.Millisecond))
	return w
}

// add watches a directory and what is below it.
func (w *watcher) add(dir string) {
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return nil // gone or unreadable; the scan will report it
		}
		if path != dir && ours(d.Name()) {
			return fs.SkipDir
		}
		if w.watched >= maxWatched {
			w.partial = true
			return fs.SkipAll
		}
		if err := w.events.Add(path); err != nil {
			w.partial = true
			return nil
		}
		w.watched++
		return nil
	})
	w.partial = w.partial || err != nil
}

// ours reports whether changes under a name are ignored.
func ours(name string) bool { return name == ".git" || strings.HasPrefix(name, workspace.StagePrefix) }

// follow turns events into hints: when nothing happened for the quiet time, or
// when changes continue for ten times as long.
func (w *watcher) follow(pause time.Duration) {
	defer close(w.done)
	var events chan fsnotify.Event
	var errors chan error
	if w.events != nil {
		events, errors = w.events.Events, w.events.Errors
	}
	quiet := time.NewTimer(pause)
	quiet.Stop()
	var since time.Time
	sometimes := time.NewTicker(20 * pause)
	defer sometimes.Stop()
	for {
		select {
		case <-w.quit:
			return
		case e, ok := <-events:
			if !ok {
				return
			}
			if ours(filepath.Base(e.Name)) || e.Op == fsnotify.Chmod && isDirectory(e.Name) {
				continue
			}
			if e.Op.Has(fsnotify.Create) && isDirectory(e.Name) {
				w.add(e.Name)
			}
			if since.IsZero() {
				since = time.Now()
			}
			quiet.Reset(max(0, min(pause, 10*pause-time.Since(since))))
		case <-errors:
			w.partial = true // events were lost
		case <-quiet.C:
			since = time.Time{}
			w.hint()
		case <-sometimes.C:
			if w.partial {
				w.hint()
			}
		}
	}
}

func isDirectory(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.IsDir()
}

func (w *watcher) hint() {
	select {
	case w.hints <- struct{}{}:
	default: // a hint is waiting already
	}
}

func (w *watcher) close() {
	close(w.quit)
	if w.events != nil {
		_ = w.events.Close() // only hints are lost
	}
	<-w.done
}
