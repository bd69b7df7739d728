package graph

import (
	"sync"

	"github.com/stet-dev/stet/blob"
)

// Set is a set of blobs with the kinds that each was read as. It takes about 90 bytes
// for a blob, so a store of a million needs less than 100 MB. It is safe for
// concurrent use, and the zero value is empty.
type Set struct {
	mu sync.Mutex
	m  map[blob.ID]uint32 // one bit for each kind with references, bit 0 for all leaf kinds
}

// Add adds a blob read as kind and reports whether that is new.
func (s *Set) Add(id blob.ID, kind Kind) bool {
	bit := uint32(1)
	if !kind.Leaf() {
		bit = 2 << (kind - State)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.m == nil {
		s.m = make(map[blob.ID]uint32)
	}
	old := s.m[id]
	s.m[id] = old | bit
	return old&bit == 0
}

// Has reports whether the set has the blob as any kind.
func (s *Set) Has(id blob.ID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.m[id]
	return ok
}

// Len returns the number of blobs.
func (s *Set) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.m)
}
