package sqlite

import (
	"maps"
	"sync"
	"sync/atomic"

	"github.com/stet-dev/stet/blob"
)

// freshLimit bounds each half of fresh; both together take about 4 MB.
const freshLimit = 1 << 15

// fresh remembers blobs that were durable and of one generation when a transaction of
// this process ended. While that generation is current, no collector of any process
// removes them, and Has need not look them up. It keeps only the latest ones.
type fresh struct {
	// current is the generation while a transaction of this process is open, and 0
	// otherwise. Until such a transaction ends, no process begins a generation or
	// removes a blob.
	current atomic.Int64

	mu           sync.Mutex // guards what follows
	generation   int64
	young, older map[blob.ID]bool
}

func (f *fresh) has(generation int64, id blob.ID) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.generation == generation && (f.young[id] || f.older[id])
}

func (f *fresh) add(generation int64, ids map[blob.ID]bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.generation != generation {
		f.generation, f.young, f.older = generation, nil, nil
	}
	if len(f.young)+len(ids) > freshLimit {
		f.older, f.young = f.young, nil
	}
	if len(ids) > freshLimit {
		return // more than fits, as in a first capture
	}
	if f.young == nil {
		f.young = make(map[blob.ID]bool, len(ids))
	}
	maps.Copy(f.young, ids)
}

// all reports whether it remembers all of the blobs, and in which generation.
func (f *fresh) all(ids []blob.ID) (generation int64, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, id := range ids {
		if !f.young[id] && !f.older[id] {
			return 0, false
		}
	}
	return f.generation, f.generation > 0
}

// certain reports whether all of the blobs are known to be stored, and false if only the
// database can tell. Blobs that this process stored a moment ago are often looked up,
// since the next state of a conversation leans on the last one. A reading connection
// would drop its cache for that, because there was a commit.
func (w *writer) certain(ids []blob.ID) bool {
	known, ok := w.fresh.all(ids)
	if !ok {
		return false
	}
	if current := w.fresh.current.Load(); current != 0 {
		return current == known
	}
	if !w.turn.TryLock() {
		return false
	}
	defer w.turn.Unlock()
	if w.closed {
		return false
	}
	current, err := generation(w.conn)
	return err == nil && current == known
}

// syncing is called when the library begins and finishes syncing the log.
func (w *writer) syncing(begins bool) {
	if begins {
		w.fresh.current.Store(w.generation)
	} else {
		w.fresh.current.Store(0)
	}
}
