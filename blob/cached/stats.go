package cached

import (
	"context"
	"sync/atomic"

	"github.com/stet-dev/stet/meter"
)

// Stats count what a cache has done since it was created and what it holds.
type Stats struct {
	// Hits were answered from memory, Misses from the inner store, Shared by a read
	// already running for another Get, Negative from the remembered absences.
	Hits, Misses, Shared, Negative uint64
	// Evicted blobs were removed to make room for others.
	Evicted uint64
	// Blobs and Bytes are in memory now.
	Blobs int
	Bytes int64
}

// Stats returns the counts so far.
func (s *Store) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.counters
	return Stats{
		Hits:     c.results[hit].Load(),
		Misses:   c.results[miss].Load(),
		Shared:   c.results[shared].Load(),
		Negative: c.results[negative].Load(),
		Evicted:  c.evictions.Load(),
		Blobs:    s.lru.Len(),
		Bytes:    s.lru.Weight() - overhead*int64(s.lru.Len()),
	}
}

// result is the source of the answer to a Get.
type result int

const (
	hit result = iota
	miss
	shared
	negative
	results
)

// String is the value of the attribute cache_type.
func (r result) String() string {
	return [...]string{"hit", "miss", "shared", "negative"}[r]
}

type counters struct {
	results   [results]atomic.Uint64
	evictions atomic.Uint64
	counted   [results]meter.Counter
}

func newCounters(provider meter.Provider) *counters {
	m := meter.Of(provider, "github.com/stet-dev/stet/blob/cached")
	c := &counters{}
	for r := range results {
		c.counted[r] = m.Counter("agent_kv.cached.get_blob.results", "Gets by source of the answer.", "cache_type", r.String())
	}
	return c
}

func (c *counters) count(ctx context.Context, r result) {
	c.results[r].Add(1)
	c.counted[r].Add(ctx, 1)
}

func (c *counters) evicted(n int) { c.evictions.Add(uint64(n)) }
