package pack

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/stet-dev/stet/internal/abreast"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// Check checks everything that this package keeps: all its rows, and the packs of
// every archived conversation as Verify does. It passes findings to report, with the
// key of the row and the conversation, if known, and goes on unless report returns an
// error.
func (s *Store) Check(ctx context.Context, data bool, report func(key, conversation string, err error) error) error {
	keys, err := s.ownKeys(ctx)
	if err != nil {
		return fmt.Errorf("check packs: %w", err)
	}
	for some := range slices.Chunk(keys, 16*checkers) {
		conversations, errs := abreast.Each(some, checkers, func(key string) (string, error) { return s.checkKey(ctx, key, data) })
		for i, err := range errs {
			if err == nil || errors.Is(err, ErrNotArchived) { // brought back meanwhile, or not archived yet
				continue
			}
			if err := report(some[i], conversations[i], err); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkers is how many conversations are checked at once, since each waits for the bucket.
const checkers = 16

// checkKey checks a row, and returns the conversation that it belongs to, if known.
func (s *Store) checkKey(ctx context.Context, key string, data bool) (conversation string, err error) {
	if keyspace.Packs().Contains(key) {
		conversation = keyspace.Last(key)
		return conversation, s.Verify(ctx, conversation, data)
	}
	return s.checkShadow(ctx, key)
}

// ownKeys returns the keys of all rows of this package.
func (s *Store) ownKeys(ctx context.Context) (keys []string, err error) {
	for row, err := range s.rows.Scan(ctx, own, kv.ScanOptions{KeysOnly: true}) {
		if err != nil {
			return nil, err
		}
		keys = append(keys, row.Key)
	}
	return keys, nil
}

// checkShadow checks a shadow alone. Verify compares it with the pack.
func (s *Store) checkShadow(ctx context.Context, key string) (conversation string, err error) {
	for range looks {
		row, err := s.rows.Get(ctx, key)
		if errors.Is(err, kv.ErrNotFound) {
			return "", nil
		}
		if err != nil {
			return "", err
		}
		sh, err := decodeShadow(row)
		if err != nil {
			return "", err
		}
		e, err := s.note(ctx, sh.conversation)
		if err != nil || e != nil && e.state == archived {
			return "", nil // damage of the catalog is reported with the catalog
		}
		conversation = sh.conversation
		// Brought back between the two reads?
	}
	return conversation, fmt.Errorf("%w: row %q belongs to a conversation that is not archived", kv.ErrCorrupt, key)
}

// verifyShadows compares the rows that stayed in the database with the pack.
func (s *Store) verifyShadows(ctx context.Context, e *entry, c *contents) error {
	found := uint64(0)
	for _, at := range c.rows {
		if !isShadow(at.key) {
			continue
		}
		found++
		row, err := s.rows.Get(ctx, keyspace.Packed(at.key))
		if errors.Is(err, kv.ErrNotFound) {
			return s.unlessMoved(ctx, e, damaged("row %q is not in the database", at.key))
		}
		if err != nil {
			return err
		}
		sh, err := decodeShadow(row)
		if err != nil {
			return err
		}
		if sh.conversation != e.id || sh.row.Version != at.version || sumOf(sh.row.Value) != at.sum {
			return s.unlessMoved(ctx, e, damaged("row %q differs in the database", at.key))
		}
	}
	if found != e.shadows {
		return damaged("%d rows for lists, want %d", found, e.shadows)
	}
	return nil
}

// unlessMoved returns what is wrong, or errGone if the conversation was brought back
// meanwhile, so that the caller tries again.
func (s *Store) unlessMoved(ctx context.Context, e *entry, wrong error) error {
	now, err := s.note(ctx, e.id)
	if err != nil {
		return err
	}
	if now == nil || now.version != e.version {
		return errGone
	}
	return wrong
}

// drop removes the objects of a pack from memory, so that they are read again.
func (s *Store) drop(e *entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loaded.Remove(e.objects[0].key)
	objects := e.objectKeys()
	s.blocks.RemoveIf(func(key blockKey) bool { return slices.Contains(objects, key.object) })
}
