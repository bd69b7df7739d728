package cli

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/stet-dev/stet/workspace"
)

// maxWatched bounds the directories that are watched; a system has only so many
// watches for all its programs.
const maxWatched = 4096

// watcher tells when changes in a tree have settled. It only gives hints: what
// it misses is found by the next scan, and where it cannot watch everything it
// hints from time to time.
type watcher struct {
	settled chan struct{} // holds one hint at most
	events  *fsnotify.Watcher
	watched int
	partial bool
	quit    chan struct{}
	done    chan struct{}
}

// watchTree watches a directory and all below it, except what is git's or ours.
func watchTree(root string, settle time.Duration) *watcher {
	w := &watcher{settled: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{})}
	var err error
	if w.events, err = fsnotify.NewWatcher(); err != nil {
		w.events, w.partial = nil, true
	} else {
		w.add(root)
	}
	go w.follow(max(settle, 50*time.Millisecond))
	return w
}

// add watches a directory and what is below it.
func (w *watcher) add(dir string) {
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return nil // gone, or not readable; the scan will know
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

// ours reports whether changes under a name are nobody's business.
func ours(name string) bool { return name == ".git" || strings.HasPrefix(name, workspace.StagePrefix) }

// follow turns events into hints: when nothing happened for the settling time, or
// when it goes on and on for ten times as long.
func (w *watcher) follow(settle time.Duration) {
	defer close(w.done)
	var events chan fsnotify.Event
	var errors chan error
	if w.events != nil {
		events, errors = w.events.Events, w.events.Errors
	}
	quiet := time.NewTimer(settle)
	quiet.Stop()
	var since time.Time
	sometimes := time.NewTicker(20 * settle)
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
			quiet.Reset(max(0, min(settle, 10*settle-time.Since(since))))
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
	case w.settled <- struct{}{}:
	default: // one is waiting already
	}
}

func (w *watcher) close() {
	close(w.quit)
	if w.events != nil {
		_ = w.events.Close() // only hints are lost
	}
	<-w.done
}
