package cached

import (
	"time"

	"github.com/stet-dev/stet/blob"
)

// overhead is the approximate cost of an item besides its content, so that a cache
// full of tiny blobs also stays within its limit.
const overhead = 200

// keepLocked caches data, takes ownership of it, and returns how many other blobs were
// evicted.
func (s *Store) keepLocked(id blob.ID, data []byte) (evicted int) {
	return s.lru.Add(id, data, int64(len(data))+overhead)
}

// touchLocked reports whether id is cached, and makes it the most recently used.
func (s *Store) touchLocked(id blob.ID) bool {
	_, ok := s.lru.Get(id)
	return ok
}

// absentees are ids that the inner store recently did not have. The caller locks.
type absentees struct {
	max   int
	keep  time.Duration
	until map[blob.ID]time.Time
}

func (a *absentees) has(id blob.ID) bool {
	until, ok := a.until[id]
	if ok && !time.Now().Before(until) {
		delete(a.until, id)
		return false
	}
	return ok
}

func (a *absentees) add(id blob.ID) {
	if a.max <= 0 {
		return
	}
	if a.until == nil {
		a.until = make(map[blob.ID]time.Time)
	}
	for other := range a.until { // any will do: it is only looked up again
		if len(a.until) < a.max {
			break
		}
		delete(a.until, other)
	}
	a.until[id] = time.Now().Add(a.keep)
}

func (a *absentees) remove(id blob.ID) { delete(a.until, id) }
