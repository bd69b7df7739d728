package compressed

import (
	"bytes"
	"container/list"
	"sync"

	"github.com/stet-dev/stet/blob"
)

// entryCost is about what a cached record takes besides its payload.
const entryCost = 256

// cache remembers records that were lately read or written, without the
// payloads of whole copies, of edits and of large literals. What a record says about a
// content stays true whatever the store below does; that a base is still stored
// must be asked there. Where a hinted one ends up in a chain any process may have
// decided since, so that these are not remembered.
type cache struct {
	mu      sync.Mutex
	limit   int64
	size    int64                     // guarded by mu
	entries map[blob.ID]*list.Element // guarded by mu
	recent  list.List                 // guarded by mu; of *cached, latest first
}

type cached struct {
	id blob.ID
	r  *record
}

func newCache(limit int64) *cache {
	return &cache{limit: limit, entries: map[blob.ID]*list.Element{}}
}

// get returns a record that nobody may change, or nil.
func (c *cache) get(id blob.ID) *record {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[id]
	if e == nil {
		return nil
	}
	c.recent.MoveToFront(e)
	return e.Value.(*cached).r
}

// add remembers a copy of a record.
func (c *cache) add(id blob.ID, r *record) {
	if r.kind == kindHinted {
		return
	}
	kept := *r
	if r.isExtension() && !r.edited && int64(len(r.payload)) <= c.limit/8 {
		kept.payload = bytes.Clone(r.payload)
	} else {
		kept.payload, kept.hollow = nil, true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.removeLocked(c.entries[id])
	if cost(&kept) > c.limit {
		return
	}
	c.entries[id] = c.recent.PushFront(&cached{id, &kept})
	c.size += cost(&kept)
	for c.size > c.limit {
		c.removeLocked(c.recent.Back())
	}
}

func cost(r *record) int64 { return entryCost + int64(len(r.payload)) }

func (c *cache) removeLocked(e *list.Element) {
	if e == nil {
		return
	}
	gone := c.recent.Remove(e).(*cached)
	delete(c.entries, gone.id)
	c.size -= cost(gone.r)
}

// purge forgets everything.
func (c *cache) purge() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.recent.Init()
	clear(c.entries)
	c.size = 0
}
