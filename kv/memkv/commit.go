package memkv

import (
	"bytes"
	"context"
	"slices"

	"github.com/stet-dev/stet/kv"
)

// Commit applies a batch. Everything that can fail comes before the first
// change.
func (s *Store) Commit(ctx context.Context, b *kv.Batch) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := b.Check(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range b.Expect {
		if got := s.rows[e.Key].version; got != e.Version {
			return &kv.ConflictError{Key: e.Key, Want: e.Version, Got: got}
		}
	}
	if s.blobs != nil && len(b.Refs) > 0 {
		if missing := s.blobs.Refer(b.Refs...); len(missing) > 0 {
			return &kv.MissingBlobsError{IDs: missing}
		}
	}
	s.wakeLocked(s.applyLocked(b))
	return nil
}

// applyLocked changes the rows and returns the keys that it touched.
func (s *Store) applyLocked(b *kv.Batch) []string {
	s.version++
	var changed []string
	for _, r := range b.DeleteRange {
		lo, hi := s.spanLocked(r)
		for _, key := range s.keys[lo:hi] {
			delete(s.rows, key)
			changed = append(changed, key)
		}
		s.keys = slices.Delete(s.keys, lo, hi)
	}
	for _, key := range b.Delete {
		if i, ok := slices.BinarySearch(s.keys, key); ok {
			delete(s.rows, key)
			s.keys = slices.Delete(s.keys, i, i+1)
			changed = append(changed, key)
		}
	}
	for _, set := range b.Set {
		if i, ok := slices.BinarySearch(s.keys, set.Key); !ok {
			s.keys = slices.Insert(s.keys, i, set.Key)
		}
		s.rows[set.Key] = row{value: bytes.Clone(set.Value), version: s.version}
		changed = append(changed, set.Key)
	}
	return changed
}
