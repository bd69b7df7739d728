package sealed

import (
	"context"
	"errors"
	"fmt"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/fault"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

var (
	// ErrNoKeyring says that a store is encrypted and no keyring was given.
	ErrNoKeyring = fault.Named(fault.WrongKey, "no-keyring", "the keyring is missing")
	// ErrNotEncrypted says that a keyring was given for a store that holds data
	// which is not encrypted.
	ErrNotEncrypted = fault.Named(fault.WrongKey, "not-encrypted", "the store is not encrypted")
)

// MarkKey is the row that marks an encrypted store. It is sealed like all others, so
// opening it proves that the keyring is right. Its existence is visible without a
// key.
var MarkKey = keyspace.Setting("encrypted")

// Evidence is what the rows of a store show about encryption.
type Evidence int

// The kinds of evidence.
const (
	Nothing Evidence = iota // no rows show it
	Plain                   // there are unencrypted rows
	Keyed                   // rows are encrypted, but the mark is missing
	Marked                  // the mark exists
)

// sampled is how many rows are checked: more than one, because any may be damaged.
const sampled = 8

// Look reports, without a key, whether the rows of a driver are encrypted. Rows of
// package pack have no envelope of this package and show nothing.
func Look(ctx context.Context, rows kv.Store) (Evidence, error) {
	found, _, err := look(ctx, rows)
	return found, err
}

// look is Look, and also returns the stored row that decided.
func look(ctx context.Context, rows kv.Store) (Evidence, kv.Row, error) {
	row, err := rows.Get(ctx, MarkKey)
	if err == nil {
		return Marked, row, nil
	}
	if !errors.Is(err, kv.ErrNotFound) {
		return Nothing, kv.Row{}, err
	}
	packs := keyspace.AllPacked()
	for _, r := range []kv.Range{{End: packs.Start}, {Start: packs.End}} {
		for row, err := range rows.Scan(ctx, r, kv.ScanOptions{Limit: sampled}) {
			if err != nil {
				return Nothing, kv.Row{}, err
			}
			form, err := parsePrefix(row.Key, row.Value)
			if err != nil {
				continue
			}
			if form&formKeyed != 0 {
				return Keyed, row, nil
			}
			return Plain, row, nil
		}
	}
	return Nothing, kv.Row{}, nil
}

// Guard rejects a keyring that does not match the rows of a driver, and encrypted
// rows without a keyring: ErrNoKeyring, ErrNotEncrypted, or blob.ErrWrongKey for the
// keyring of another store. It writes nothing. It returns what it found, so that the
// caller can Mark an unmarked store.
//
// A damaged mark still means that the store is encrypted; checking rows finds the
// damage.
func (s *Store) Guard(ctx context.Context) (Evidence, error) {
	found, row, err := look(ctx, s.inner)
	if err != nil {
		return found, fmt.Errorf("check whether rows are encrypted: %w", err)
	}
	switch {
	case s.opts.Ring == nil:
		if found == Keyed || found == Marked {
			return found, fmt.Errorf("%w: the store is encrypted", ErrNoKeyring)
		}
	case found == Plain:
		if !s.opts.AllowUnkeyed {
			return found, fmt.Errorf("%w: there is a keyring, but the store holds plain data", ErrNotEncrypted)
		}
	case found != Nothing:
		_, err := s.open(row.Key, row.Value)
		if errors.Is(err, blob.ErrWrongKey) {
			err = fmt.Errorf("the keyring does not belong to this store: %w", err)
		}
		if err != nil && !errors.Is(err, kv.ErrCorrupt) {
			return found, err
		}
	}
	return found, nil
}

// Mark returns the change that adds the mark.
func Mark() kv.Set { return kv.Set{Key: MarkKey, Value: []byte("1")} }

// Mark adds the mark if it is missing.
func (s *Store) Mark(ctx context.Context) error {
	err := s.Commit(ctx, &kv.Batch{Expect: []kv.Expect{{Key: MarkKey}}, Set: []kv.Set{Mark()}})
	if errors.Is(err, kv.ErrConflict) {
		return nil // another process was faster
	}
	return err
}
