package compressed

import (
	"bytes"
	"sync"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/internal/lru"
)

// entryCost is the approximate cost of a cached record besides its payload.
const entryCost = 256

// cache remembers recently read or written records, without the payloads of whole
// copies, edits and large literals. A record's description of a content stays true
// whatever the store below does; whether a base is still stored must be checked
// there. Hinted records are not remembered, because any process may have given them a
// place in a chain since.
type cache struct {
	limit  int64
	mu     sync.Mutex
	recent *lru.Cache[blob.ID, *record] // guarded by mu
}

func newCache(limit int64) *cache {
	return &cache{limit: limit, recent: lru.New[blob.ID, *record](limit)}
}

// get returns a record that must not be changed, or nil.
func (c *cache) get(id blob.ID) *record {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, _ := c.recent.Get(id)
	return r
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
	c.recent.Add(id, &kept, entryCost+int64(len(kept.payload)))
}

// purge forgets everything.
func (c *cache) purge() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.recent.Clear()
}
