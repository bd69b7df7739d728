package cloudagent

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/stet-dev/stet/blob"
	aiserverv1 "github.com/stet-dev/stet/gen/aiserver/v1"
)

// maxPending is how many bytes of a copy may be written in the background.
const maxPending = 32 << 20

// copyCache takes the blobs of a copied agent and writes them in the background, so
// the stream does not wait for them. Until they are written they are read from
// memory; the follower does not change blobs that it has put.
type copyCache struct {
	blob.Store
	s     *Store
	queue string

	mu      sync.Mutex // guards what follows
	pending map[blob.ID][]byte
	size    int
}

func newCopyCache(s *Store, agent string) *copyCache {
	return &copyCache{Store: s.blobs, s: s, queue: "copy of " + agent, pending: make(map[blob.ID][]byte)}
}

// Put implements blob.Store for whole blobs.
func (c *copyCache) Put(ctx context.Context, blobs ...blob.Blob) error {
	if c.full() {
		if err := c.Flush(ctx); err != nil {
			return err
		}
	}
	queued := make([]*aiserverv1.PreFetchedBlob, len(blobs))
	c.mu.Lock()
	for i, b := range blobs {
		queued[i] = &aiserverv1.PreFetchedBlob{Id: b.ID.Bytes(), Value: b.Data}
		if _, twice := c.pending[b.ID]; !twice {
			c.size += len(b.Data)
		}
		c.pending[b.ID] = b.Data
	}
	c.mu.Unlock()
	return c.s.EnqueueSetBlobs(ctx, c.queue, queued...)
}

func (c *copyCache) full() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.size > maxPending
}

// Get implements blob.Store.
func (c *copyCache) Get(ctx context.Context, id blob.ID) ([]byte, error) {
	c.mu.Lock()
	data, ok := c.pending[id]
	c.mu.Unlock()
	if ok {
		return slices.Clone(data), nil
	}
	return c.Store.Get(ctx, id)
}

// Has implements blob.Store.
func (c *copyCache) Has(ctx context.Context, ids ...blob.ID) ([]bool, error) {
	has, err := c.Store.Has(ctx, ids...)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, id := range ids {
		if _, ok := c.pending[id]; ok {
			has[i] = true
		}
	}
	return has, nil
}

// Flush implements blob.Store: it waits until everything that was put before the call is
// written.
func (c *copyCache) Flush(ctx context.Context) error {
	c.mu.Lock()
	ids := slices.Collect(maps.Keys(c.pending))
	c.mu.Unlock()
	if len(ids) == 0 {
		return nil
	}
	if err := c.s.WaitForPendingWrites(ctx, c.queue); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range ids {
		c.size -= len(c.pending[id])
		delete(c.pending, id)
	}
	return nil
}
