package upkeep

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/fault"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// ErrNoQuarantine says that the rows of a store cannot be set aside from here.
var ErrNoQuarantine = fault.Named(fault.Unsupported, "no-quarantine", "rows can only be quarantined on the machine that holds the store")

// Quarantine sets damaged rows aside, so that everything that reads many rows works
// again, and returns their keys. They are kept as they are stored, under other keys;
// RestoreQuarantine puts them back. A row of a newer release, or one sealed with a
// missing key, is not damaged and stays. The next collection may remove what only a
// quarantined row refers to.
func (s *Service) Quarantine(ctx context.Context) (_ []string, err error) {
	if s.stores.Bare == nil {
		return nil, ErrNoQuarantine
	}
	var keys []string
	for row, err := range s.stores.Bare.Scan(ctx, kv.Range{}, kv.ScanOptions{KeysOnly: true}) {
		if err != nil {
			return nil, fmt.Errorf("quarantine: %w", err)
		}
		if !keyspace.Quarantine().Contains(row.Key) && !keyspace.AllPacked().Contains(row.Key) {
			keys = append(keys, row.Key)
		}
	}
	var moved []string
	defer func() { // what was moved before an error, too
		err = errors.Join(err, s.noteChanged(ctx, moved))
	}()
	for _, key := range keys {
		bad, err := s.corrupt(ctx, key)
		if err == nil && bad {
			err = s.moveRow(ctx, key, keyspace.Quarantined(key))
		}
		if err != nil {
			return moved, fmt.Errorf("quarantine %q: %w", key, err)
		}
		if bad {
			moved = append(moved, key)
		}
	}
	return moved, nil
}

// corrupt reports whether a row is damaged for good.
func (s *Service) corrupt(ctx context.Context, key string) (bool, error) {
	row, err := s.stores.Live.Get(ctx, key)
	switch {
	case err == nil:
		return errors.Is(CheckRow(row), kv.ErrCorrupt), nil
	case errors.Is(err, kv.ErrCorrupt):
		return true, nil
	case errors.Is(err, kv.ErrNotFound) || isDamage(err) || kv.Damaged(err):
		return false, nil
	}
	return false, err
}

// noteChanged makes indexes read the conversations of rows again. It is a commit
// after those that move rows: at worst an index still finds what was set aside.
func (s *Service) noteChanged(ctx context.Context, keys []string) error {
	var ids []string
	for _, key := range keys {
		for _, id := range conversationOf(key) {
			if keyspace.CheckID(id) == nil && !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	if len(ids) == 0 {
		return nil
	}
	return conversation.New(s.stores.Blobs, s.stores.Rows, nil).Changed(ctx, ids...)
}

// moveRow gives a row another key and keeps its stored bytes.
func (s *Service) moveRow(ctx context.Context, from, to string) error {
	row, err := s.stores.Bare.Get(ctx, from)
	if err != nil {
		return err
	}
	return s.stores.Bare.Commit(ctx, &kv.Batch{
		Expect: []kv.Expect{{Key: from, Version: row.Version}, {Key: to}},
		Delete: []string{from},
		Set:    []kv.Set{{Key: to, Value: row.Value}},
	})
}

// Quarantined lists the rows that were set aside, by the keys that they had.
func (s *Service) Quarantined(ctx context.Context) ([]string, error) {
	var keys []string
	for row, err := range s.stores.Rows.Scan(ctx, keyspace.Quarantine(), kv.ScanOptions{KeysOnly: true}) {
		if err != nil {
			return nil, fmt.Errorf("list quarantine: %w", err)
		}
		keys = append(keys, keyspace.Unquarantined(row.Key))
	}
	return keys, nil
}

// RestoreQuarantine puts quarantined rows back and returns their keys. A row whose
// place is taken stays aside.
func (s *Service) RestoreQuarantine(ctx context.Context) ([]string, error) {
	if s.stores.Bare == nil {
		return nil, ErrNoQuarantine
	}
	keys, err := s.Quarantined(ctx)
	if err != nil {
		return nil, err
	}
	var back []string
	for _, key := range keys {
		err := s.moveRow(ctx, keyspace.Quarantined(key), key)
		if errors.Is(err, kv.ErrConflict) {
			continue
		}
		if err != nil {
			return back, fmt.Errorf("restore %q from quarantine: %w", key, err)
		}
		back = append(back, key)
	}
	return back, s.noteChanged(ctx, back)
}
