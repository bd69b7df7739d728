package sealed

import (
	"context"
	"errors"
	"fmt"

	"github.com/stet-dev/stet/kv"
)

// ResealResult counts rows.
type ResealResult struct {
	Seen     int64
	Resealed int64 // now under the active key
	Skipped  int64 // changed by others meanwhile
}

// How much is resealed in one commit.
const (
	resealRowsMax  = 64
	resealBytesMax = 4 << 20
)

// Reseal rewrites the rows of a range that are under a retired key or, with
// AllowUnkeyed, without one. It can be stopped at any time and run again; when a run
// neither reseals nor skips a row, all are under the active key. Each rewritten row
// gets a new version, like any other write: a writer that expects the old one gets
// kv.ErrConflict and has to read again.
func (s *Store) Reseal(ctx context.Context, r kv.Range) (ResealResult, error) {
	var result ResealResult
	for {
		stale, next, err := s.stalePage(ctx, r, &result)
		if err != nil {
			return result, err
		}
		if err := s.resealRows(ctx, stale, &result); err != nil {
			return result, err
		}
		if next == "" {
			return result, nil
		}
		r.Start = next
	}
}

// stalePage collects rows of a range, opened, and returns where to go on. No scan is
// open while the caller commits.
func (s *Store) stalePage(ctx context.Context, r kv.Range, result *ResealResult) (stale []kv.Row, next string, err error) {
	size := 0
	for row, err := range s.inner.Scan(ctx, r, kv.ScanOptions{}) {
		if err != nil {
			return nil, "", err
		}
		result.Seen++
		due, err := s.isStale(row)
		if err != nil {
			return nil, "", err
		}
		if !due {
			continue
		}
		if row.Value, err = s.open(row.Key, row.Value); err != nil {
			return nil, "", err
		}
		stale = append(stale, row)
		size += len(row.Value)
		if len(stale) == resealRowsMax || size >= resealBytesMax {
			return stale, row.Key + "\x00", nil // the least key after it; keys hold no NUL
		}
	}
	return stale, "", nil
}

func (s *Store) isStale(row kv.Row) (bool, error) {
	form, err := parsePrefix(row.Key, row.Value)
	if err != nil {
		return false, err
	}
	keyed := form&formKeyed != 0
	if !keyed || s.opts.Ring == nil {
		return keyed != (s.opts.Ring != nil), nil // a form that we no longer write
	}
	id, err := keyOf(row.Key, row.Value)
	if err != nil {
		return false, err
	}
	active, err := s.opts.Ring.Active()
	if err != nil {
		return false, fmt.Errorf("reseal rows: %w", err)
	}
	return id != active.ID(), nil
}

// resealRows commits all rows at once or, if one of them changed meanwhile, each
// separately.
func (s *Store) resealRows(ctx context.Context, rows []kv.Row, result *ResealResult) error {
	if len(rows) == 0 {
		return nil
	}
	b := &kv.Batch{}
	for _, row := range rows {
		b.Expect = append(b.Expect, kv.Expect{Key: row.Key, Version: row.Version})
		b.Set = append(b.Set, kv.Set{Key: row.Key, Value: row.Value})
	}
	err := s.Commit(ctx, b)
	switch {
	case err == nil:
		result.Resealed += int64(len(rows))
		return nil
	case !errors.Is(err, kv.ErrConflict):
		return fmt.Errorf("reseal rows: %w", err)
	case len(rows) == 1:
		result.Skipped++
		return nil
	}
	for i := range rows {
		if err := s.resealRows(ctx, rows[i:i+1], result); err != nil {
			return err
		}
	}
	return nil
}
