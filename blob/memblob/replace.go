package memblob

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/stet-dev/stet/blob"
)

var (
	_ blob.Rewriter = (*Store)(nil)
	_ blob.Arrivals = (*Store)(nil)
)

// Replace implements blob.Replacer.
func (s *Store) Replace(ctx context.Context, blobs ...blob.Blob) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range blobs {
		if old := s.blobs[b.ID]; old != nil && (b.Base == old.base || s.mayLeanLocked(b.ID, b.Base)) {
			s.exchangeLocked(b.ID, bytes.Clone(b.Data), b.Base)
		}
	}
	return nil
}

// ReplaceFrom implements blob.Replacer.
func (s *Store) ReplaceFrom(ctx context.Context, id blob.ID, r io.Reader, size int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	data, err := blob.ReadExactly(r, size)
	if err != nil {
		return fmt.Errorf("replace blob %s: %w", id, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.blobs[id]
	if old == nil {
		return blob.NotFound(id)
	}
	s.exchangeLocked(id, slices.Clip(data), old.base)
	return nil
}

// exchangeLocked gives a stored blob new bytes. Readers may hold the old entry.
func (s *Store) exchangeLocked(id blob.ID, data []byte, base blob.ID) {
	e := *s.blobs[id]
	s.arrivals++
	e.data, e.base, e.arrived = data, base, s.arrivals
	s.blobs[id] = &e
}

// mayLeanLocked reports whether a blob can get a base: the base and everything it
// leans on are stored, and the blob is not among them.
func (s *Store) mayLeanLocked(id, base blob.ID) bool {
	for !base.IsZero() {
		e := s.blobs[base]
		if base == id || e == nil {
			return false
		}
		base = e.base
	}
	return true
}

// Kept implements blob.Rewriter.
func (s *Store) Kept(ctx context.Context, id blob.ID) (blob.Blob, error) {
	e, err := s.find(ctx, id)
	if err != nil {
		return blob.Blob{}, err
	}
	return blob.Blob{ID: id, Data: bytes.Clone(e.data), Base: e.base, Given: true}, nil
}

// Info implements blob.Rewriter.
func (s *Store) Info(ctx context.Context, id blob.ID) (blob.Info, error) {
	e, err := s.find(ctx, id)
	if err != nil {
		return blob.Info{}, err
	}
	return e.info(id), nil
}

// Arrived implements blob.Arrivals. A replaced blob arrives again. A mark is a number
// that is given out once.
func (s *Store) Arrived(ctx context.Context, mark string, limit int) ([]blob.Info, string, error) {
	if err := ctx.Err(); err != nil {
		return nil, mark, err
	}
	after, _ := strconv.ParseUint(mark, 10, 64) // a mark of another store is before the first blob
	type arrival struct {
		number uint64
		info   blob.Info
	}
	var all []arrival
	s.mu.RLock()
	for id, e := range s.blobs {
		if e.arrived > after {
			all = append(all, arrival{e.arrived, e.info(id)})
		}
	}
	s.mu.RUnlock()
	slices.SortFunc(all, func(a, b arrival) int { return cmp.Compare(a.number, b.number) })
	var infos []blob.Info
	for _, a := range all[:min(limit, len(all))] {
		infos = append(infos, a.info)
		mark = strconv.FormatUint(a.number, 10)
	}
	return infos, mark, nil
}
