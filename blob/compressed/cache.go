package compressed

import (
	"bytes"
	"container/list"
	"sync"

	"github.com/stet-dev/stet/blob"
)

// entryCost is the approximate cost of a cached record besides its payload.
const entryCost = 256

// cache remembers recently read or written records, without the payloads of whole
// copies, edits and large literals. A record's description of a content stays true
// whatever the store below does; whether a base is still stored must be checked
// there. Hinted records are not remembered, because any process may have given them a
// place in a chain since.
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

// get returns a record that must not be changed, or nil.
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
