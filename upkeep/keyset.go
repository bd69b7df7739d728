package upkeep

import "hash/maphash"

// keySet remembers keys by their sums. It can hold a key for another one, in one of 2^64
// cases, so it only saves looks that would find nothing wrong.
type keySet struct {
	seed maphash.Seed
	sums map[uint64]struct{}
}

func newKeySet() *keySet {
	return &keySet{seed: maphash.MakeSeed(), sums: make(map[uint64]struct{})}
}

func (s *keySet) add(key string) { s.sums[maphash.String(s.seed, key)] = struct{}{} }

func (s *keySet) has(key string) bool {
	_, ok := s.sums[maphash.String(s.seed, key)]
	return ok
}
