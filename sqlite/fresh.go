package sqlite

import (
	"maps"
	"sync"

	"github.com/stet-dev/stet/blob"
)

// freshLimit bounds each half of fresh; both together take about 4 MB.
const freshLimit = 1 << 15

// fresh remembers blobs that were durable and of one generation when a transaction of
// this process ended. While that generation is current, no collector of any process
// removes them, and Has need not look them up. It keeps the latest ones.
type fresh struct {
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
