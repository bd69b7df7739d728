package sqlite

import (
	"context"
	"sync"

	"github.com/stet-dev/stet/kv"
)

// watchers wakes goroutines that wait for changes.
type watchers struct {
	mu      sync.Mutex // guards the fields below
	all     map[*watcher]struct{}
	version string // changes when another process commits; read on the writing connection
}

type watcher struct {
	in   kv.Range
	wake chan struct{}
}

func newWatchers() *watchers { return &watchers{all: make(map[*watcher]struct{})} }

func (w *watchers) add(ctx context.Context, in kv.Range) <-chan struct{} {
	one := &watcher{in: in, wake: make(chan struct{}, 1)}
	w.mu.Lock()
	w.all[one] = struct{}{}
	w.mu.Unlock()
	context.AfterFunc(ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.all, one)
	})
	return one.wake
}

func (one *watcher) hint() {
	select {
	case one.wake <- struct{}{}:
	default: // a hint is waiting already
	}
}

// committed wakes the watchers of the rows that a batch changed.
func (w *watchers) committed(b *kv.Batch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for one := range w.all {
		if b.Touches(one.in) {
			one.hint()
		}
	}
}

// poll wakes all watchers after commits of other processes. It queries the writing
// connection, whose own commits do not count.
func (w *watchers) poll(c *conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.all) == 0 {
		return
	}
	version, err := c.pragma("data_version")
	if err != nil || version == w.version {
		return // hints may be lost
	}
	// The first look cannot tell which commits came after the watchers, so it wakes them
	// too.
	w.version = version
	for one := range w.all {
		one.hint()
	}
}

func (w *watchers) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.all)
}
