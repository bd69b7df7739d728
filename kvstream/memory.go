package kvstream

import (
	"bytes"
	"fmt"
	"time"

	"github.com/stet-dev/stet/blob"
)

// known holds the ids of blobs that the peer recently had, in two generations, so
// that dropping old ones is cheap: an id stays between half and all of lifetime.
type known struct {
	lifetime   time.Duration
	limit      int
	young, old map[blob.ID]struct{}
	turned     time.Time // when young was begun
}

// turn drops old or excess ids.
func (k *known) turn(now time.Time) {
	age := now.Sub(k.turned)
	switch {
	case age >= k.lifetime:
		k.young, k.old = nil, nil
	case age >= k.lifetime/2 || len(k.young) >= (k.limit+1)/2:
		k.young, k.old = nil, k.young
	}
	if k.young == nil {
		k.young, k.turned = make(map[blob.ID]struct{}), now
	}
}

func (k *known) add(id blob.ID) {
	if k.lifetime < 0 {
		return
	}
	k.turn(time.Now())
	k.young[id] = struct{}{}
}

func (k *known) remove(id blob.ID) {
	delete(k.young, id)
	delete(k.old, id)
}

func (k *known) has(id blob.ID) bool {
	if k.lifetime < 0 {
		return false
	}
	k.turn(time.Now())
	_, young := k.young[id]
	_, old := k.old[id]
	return young || old
}

// local holds LocalOnly blobs.
type local struct {
	limit int64
	used  int64
	blobs map[blob.ID][]byte
}

func (l *local) remove(id blob.ID) {
	if data, ok := l.blobs[id]; ok {
		l.used -= int64(len(data))
		delete(l.blobs, id)
	}
}

// remember records whether the peer has a blob; if so, the local copy is dropped.
func (s *Store) remember(id blob.ID, present bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !present {
		s.known.remove(id)
		return
	}
	s.known.add(id)
	s.local.remove(id)
}

// recall splits ids into known ones and ones to request, each once.
func (s *Store) recall(ids []blob.ID) (present map[blob.ID]bool, unsure []blob.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	present = make(map[blob.ID]bool, len(ids))
	for _, id := range ids {
		if _, seen := present[id]; seen {
			continue
		}
		_, here := s.local.blobs[id]
		present[id] = here || s.known.has(id)
		if !present[id] {
			unsure = append(unsure, id)
		}
	}
	return present, unsure
}

func (s *Store) localCopy(id blob.ID) ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	data, ok := s.local.blobs[id]
	if !ok {
		return nil, false
	}
	return append(make([]byte, 0, len(data)), data...), true
}

func (s *Store) keepLocally(b *blob.Blob) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	if _, ok := s.local.blobs[b.ID]; ok {
		return nil
	}
	size := int64(len(b.Data))
	if s.local.used+size > s.local.limit {
		return fmt.Errorf("keep %d bytes beside %d of LocalOnly blobs: %w", size, s.local.used, blob.ErrFull)
	}
	s.local.blobs[b.ID] = bytes.Clone(b.Data)
	s.local.used += size
	return nil
}
