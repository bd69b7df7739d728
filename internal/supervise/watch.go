package supervise

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/stet-dev/stet/workspace"
)

const (
	// maxWatched limits the watched directories, because watches are a limited system
	// resource.
	maxWatched = 4096
	// maxChanged limits the paths that are kept for one hint. Above that a scan of
	// everything is about as fast.
	maxChanged = 4096
)

// unwatched is how long a command runs before its directory is watched: watching a large
// tree takes longer than most commands. The first hint covers the time before. Tests
// shorten it.
var unwatched = 100 * time.Millisecond

// watcher signals when changes in a tree have stopped, and which paths changed. It only
// gives hints: the next scan finds what it misses. If it cannot watch everything, or has
// lost an event, it names no paths any more and gives periodic hints.
type watcher struct {
	root    string
	hints   chan struct{} // holds at most one hint
	events  *fsnotify.Watcher
	dirs    map[string]bool // watched
	partial bool            // not everything is watched, or events were lost
	quit    chan struct{}
	done    chan struct{}

	mu      sync.Mutex      // guards what follows
	changed map[string]bool // relative to root, since the last call of take
	unknown bool            // changed may lack paths
}

// watchTree watches a directory and everything below it, except git's files and ours.
func watchTree(root string, pause time.Duration) *watcher {
	w := &watcher{
		root: root, hints: make(chan struct{}, 1), dirs: map[string]bool{}, changed: map[string]bool{},
		quit: make(chan struct{}), done: make(chan struct{}), unknown: true,
	}
	go w.run(max(pause, 50*time.Millisecond))
	return w
}

// run begins to watch if the command has not ended by then.
func (w *watcher) run(pause time.Duration) {
	defer close(w.done)
	late := time.NewTimer(unwatched)
	defer late.Stop()
	select {
	case <-w.quit:
		return
	case <-late.C:
	}
	events, err := fsnotify.NewWatcher()
	if err != nil {
		w.partial = true
	} else {
		w.events = events
		w.add(w.root)
		defer events.Close() // only hints are lost
	}
	w.follow(pause)
}

// add watches a directory and what is below it. Each directory is watched before it is
// listed, so that nothing is created unseen in between.
func (w *watcher) add(dir string) {
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return nil // gone or unreadable; the scan will report it
		}
		if path != dir && ours(d.Name()) {
			return fs.SkipDir
		}
		if len(w.dirs) >= maxWatched || w.closing() {
			w.partial = true
			return fs.SkipAll
		}
		if err := w.events.Add(path); err != nil {
			w.partial = true
			return nil
		}
		w.dirs[path] = true
		return nil
	})
	w.partial = w.partial || err != nil
}

func (w *watcher) closing() bool {
	select {
	case <-w.quit:
		return true
	default:
		return false
	}
}

// ours reports whether changes under a name are ignored.
func ours(name string) bool { return name == ".git" || strings.HasPrefix(name, workspace.StagePrefix) }

// follow turns events into hints: when nothing happened for the quiet time, or
// when changes continue for ten times as long.
func (w *watcher) follow(pause time.Duration) {
	var events chan fsnotify.Event
	var errors chan error
	if w.events != nil {
		events, errors = w.events.Events, w.events.Errors
	}
	quiet := time.NewTimer(pause) // for what changed before
	defer quiet.Stop()
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
			if !w.noted(e) {
				continue
			}
			if since.IsZero() {
				since = time.Now()
			}
			quiet.Reset(max(0, min(pause, 10*pause-time.Since(since))))
		case <-errors:
			w.partial = true // events were lost
			w.hint()
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

// noted notes the path of an event, and reports whether it is a change.
func (w *watcher) noted(e fsnotify.Event) bool {
	if ours(filepath.Base(e.Name)) || e.Op == fsnotify.Chmod && isDirectory(e.Name) {
		return false
	}
	if e.Op.Has(fsnotify.Create) && isDirectory(e.Name) {
		w.add(e.Name)
	}
	if e.Op.Has(fsnotify.Rename) && w.dirs[e.Name] {
		w.partial = true // later events of the directory may have its former name
	}
	rel, err := filepath.Rel(w.root, e.Name)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil || rel == "." || len(w.changed) >= maxChanged {
		w.unknown = true
		return true
	}
	w.changed[filepath.ToSlash(rel)] = true
	return true
}

func isDirectory(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.IsDir()
}

func (w *watcher) hint() {
	if w.partial {
		w.mu.Lock()
		w.unknown = true
		w.mu.Unlock()
	}
	select {
	case w.hints <- struct{}{}:
	default: // a hint is waiting already
	}
}

// take returns the paths that changed since the last call, in order, or nil if they are not
// known.
func (w *watcher) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	paths := make([]string, 0, len(w.changed))
	for path := range w.changed {
		paths = append(paths, path)
	}
	if w.unknown {
		paths = nil
	}
	w.changed, w.unknown = map[string]bool{}, false
	slices.Sort(paths)
	return paths
}

func (w *watcher) close() {
	close(w.quit)
	<-w.done
}
