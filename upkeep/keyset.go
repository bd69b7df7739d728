package upkeep

import (
	"hash/maphash"
	"sync"
)

// keySet remembers keys by their sums. It can mistake a key for another one, in one
// of 2^64 cases, so it is used only to skip lookups that would find nothing wrong.
// Several goroutines add keys; lookups begin when all are added.
type keySet struct {
	seed maphash.Seed
	mu   sync.Mutex // guards sums while keys are added
	sums map[uint64]struct{}
}

func newKeySet() *keySet {
	return &keySet{seed: maphash.MakeSeed(), sums: make(map[uint64]struct{})}
}

func (s *keySet) add(key string) {
	sum := maphash.String(s.seed, key)
	s.mu.Lock()
	s.sums[sum] = struct{}{}
	s.mu.Unlock()
}

func (s *keySet) has(key string) bool {
	_, ok := s.sums[maphash.String(s.seed, key)]
	return ok
}
