package mirror

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/fault"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// ErrKeepsCopies says that a remote has copies that cannot be removed from here.
var ErrKeepsCopies = fault.New(fault.Unsupported, "only a purge there removes them")

// Remove removes the copies of blobs at the remote, for contents that must not exist
// anywhere. Nothing else is ever removed there. If the remote has no Remove, it is only
// queried: the error is ErrKeepsCopies if it has one of the blobs.
func (s *Store) Remove(ctx context.Context, ids []blob.ID) error {
	var err error
	if s.remote.Remove == nil {
		err = s.lacks(ctx, ids)
	} else {
		err = s.remote.Remove(ctx, ids)
	}
	if err != nil {
		return fmt.Errorf("remove copies at %s: %w", s.remote.Name, err)
	}
	return nil
}

// lacks fails with ErrKeepsCopies unless the remote has none of the blobs.
func (s *Store) lacks(ctx context.Context, ids []blob.ID) error {
	there := 0
	for some := range slices.Chunk(ids, 1000) {
		has, err := s.remote.Blobs.Has(ctx, some...)
		if err != nil {
			return err
		}
		for _, one := range has {
			if one {
				there++
			}
		}
	}
	if there > 0 {
		return fmt.Errorf("%d of %d are there: %w", there, len(ids), ErrKeepsCopies)
	}
	return nil
}

// StaysLocal reports whether a blob was put with LocalOnly, and never without it.
func (s *Store) StaysLocal(ctx context.Context, id blob.ID) (bool, error) {
	row, err := s.rows.Get(ctx, s.localKey(id))
	if errors.Is(err, kv.ErrNotFound) {
		return false, nil
	}
	return err == nil && len(row.Value) == 0, err
}

// Release stops protecting the blobs for which gone returns true: no row of Keep names
// them afterwards. It returns how many rows it changed.
func Release(ctx context.Context, rows kv.Store, gone func(blob.ID) bool) (changed int, err error) {
	for row, err := range kv.Each(ctx, rows, keyspace.AllKept(), false) {
		if err == nil {
			err = CheckRow(row)
		}
		if err != nil && row.Key == "" {
			return changed, fmt.Errorf("release blobs: %w", err)
		}
		if err != nil {
			continue // it holds nothing
		}
		did, err := release(ctx, rows, row, gone)
		if err != nil && !errors.Is(err, kv.ErrConflict) {
			return changed, fmt.Errorf("release blobs: %w", err)
		}
		if did {
			changed++
		}
	}
	return changed, nil
}

// release replaces one row by one without some ids. The key of a row is the sum of its
// ids.
func release(ctx context.Context, rows kv.Store, row kv.Row, gone func(blob.ID) bool) (changed bool, err error) {
	var value []byte
	var refs []blob.ID
	for raw := range slices.Chunk(row.Value, len(blob.ID{})) {
		if id := blob.ID(raw); !gone(id) {
			value, refs = append(value, raw...), append(refs, id)
		}
	}
	if len(value) == len(row.Value) {
		return false, nil
	}
	b := &kv.Batch{Expect: []kv.Expect{{Key: row.Key, Version: row.Version}}, Delete: []string{row.Key}}
	if len(value) > 0 {
		sum := sha256.Sum256(value)
		origin := keyspace.Parts(row.Key)[2]
		b.Set = []kv.Set{{Key: keyspace.Kept(origin, hex.EncodeToString(sum[:16])), Value: value}}
		b.Refs = refs
	}
	err = rows.Commit(ctx, b)
	var missing *kv.MissingBlobsError
	if errors.As(err, &missing) { // some were lost before
		b.Refs = nil
		err = rows.Commit(ctx, b)
	}
	return err == nil, err
}
