package sealed

import (
	"context"
	"errors"
	"fmt"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

var (
	// ErrNoKeyring says that a store is encrypted and no keyring was given.
	ErrNoKeyring = errors.New("the keyring is missing")
	// ErrNotEncrypted says that a keyring was given for a store that holds data
	// which is not encrypted.
	ErrNotEncrypted = errors.New("the store is not encrypted")
)

// MarkKey is the row by which an encrypted store says that it is encrypted. It is
// sealed as all others are, so that opening it proves that the keyring fits; that
// it exists can be seen without a key.
var MarkKey = keyspace.Setting("encrypted")

// Evidence is what the rows of a store say about encryption.
type Evidence int

// The kinds of evidence.
const (
	Nothing Evidence = iota // there are no rows that could tell
	Plain                   // there are rows, and they are not encrypted
	Keyed                   // rows are encrypted, and the mark is missing
	Marked                  // the mark is there
)

// sampled is how many rows are looked at: more than one, since any may be damaged.
const sampled = 8

// Look tells, without a key, whether the rows of a driver are encrypted. Rows of
// package pack have no envelope of this package and tell nothing.
func Look(ctx context.Context, rows kv.Store) (Evidence, error) {
	found, _, err := look(ctx, rows)
	return found, err
}

// look is Look, and returns the row that told, as it is stored.
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

// Guard refuses a keyring that does not go with the rows of a driver, and rows
// that are encrypted where there is no keyring: ErrNoKeyring, ErrNotEncrypted, or
// blob.ErrWrongKey for the keyring of another store. Nothing is written. It
// returns what it found, so that the caller can Mark a store that has no mark.
//
// A mark that is damaged still says that the store is encrypted; finding the
// damage is left to those who check rows.
func (s *Store) Guard(ctx context.Context) (Evidence, error) {
	found, row, err := look(ctx, s.inner)
	if err != nil {
		return found, fmt.Errorf("look whether rows are encrypted: %w", err)
	}
	switch {
	case s.opts.Ring == nil:
		if found == Keyed || found == Marked {
			return found, fmt.Errorf("%w: the store is encrypted", ErrNoKeyring)
		}
	case found == Plain:
		if !s.opts.AllowUnkeyed {
			return found, fmt.Errorf("%w: there is a keyring, and the store holds plain data", ErrNotEncrypted)
		}
	case found != Nothing:
		_, err := s.open(row.Key, row.Value)
		if errors.Is(err, blob.ErrWrongKey) {
			err = fmt.Errorf("the keyring is not that of this store: %w", err)
		}
		if err != nil && !errors.Is(err, kv.ErrCorrupt) {
			return found, err
		}
	}
	return found, nil
}

// Mark is the change that makes the mark.
func Mark() kv.Set { return kv.Set{Key: MarkKey, Value: []byte("1")} }

// Mark makes the mark where there is none.
func (s *Store) Mark(ctx context.Context) error {
	err := s.Commit(ctx, &kv.Batch{Expect: []kv.Expect{{Key: MarkKey}}, Set: []kv.Set{Mark()}})
	if errors.Is(err, kv.ErrConflict) {
		return nil // somebody else was faster
	}
	return err
}
