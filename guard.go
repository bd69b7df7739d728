package stet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync/atomic"
	"syscall"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/encrypted"
	"github.com/stet-dev/stet/keyring"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/kv/sealed"
	"github.com/stet-dev/stet/workspace"
)

var (
	// ErrNoKeyring says that a store is encrypted, or was opened with a key, but its
	// keyring is missing. Nothing was written.
	ErrNoKeyring = sealed.ErrNoKeyring
	// ErrNotEncrypted says that a store has a keyring, or was opened with a key, but is
	// not encrypted. Nothing was written.
	ErrNotEncrypted = sealed.ErrNotEncrypted
)

// guard rejects a backend with encrypted data and no ring, and the reverse. It
// returns what the rows show.
func guard(ctx context.Context, b Backend, ring *keyring.Ring, tenant string) (sealed.Evidence, error) {
	found, err := sealed.New(b.Rows, &sealed.Options{Ring: ring, Tenant: tenant}).Guard(ctx)
	if err != nil || found != sealed.Nothing {
		return found, err
	}
	// Without rows, check the first blobs.
	key, some, err := firstSealed(ctx, b)
	switch {
	case err != nil:
		return found, fmt.Errorf("check whether blobs are encrypted: %w", err)
	case !some:
		return found, nil
	case key == nil && ring != nil:
		return found, fmt.Errorf("%w: there is a keyring, but the store holds plain data", ErrNotEncrypted)
	case key != nil && ring == nil:
		return found, fmt.Errorf("%w: the store is encrypted", ErrNoKeyring)
	case key != nil:
		if _, err := ring.Key(*key); err != nil {
			return found, fmt.Errorf("the keyring does not belong to this store: %w: %w", blob.ErrWrongKey, err)
		}
		return sealed.Keyed, nil
	}
	return sealed.Plain, nil
}

// errEnough ends a list early.
var errEnough = errors.New("enough")

// sampled is how many blobs are checked: more than one, because any may be damaged.
const sampled = 8

// firstSealed checks the first blobs of a store: whether there are any, and which key
// seals one of them.
func firstSealed(ctx context.Context, b Backend) (key *keyring.KeyID, some bool, err error) {
	if b.Inventory == nil {
		return nil, false, nil
	}
	var names []blob.ID
	err = b.Inventory.List(ctx, blob.ID{}, func(i blob.Info) error {
		if names = append(names, i.ID); len(names) == sampled {
			return errEnough
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return nil, false, err
	}
	for _, name := range names {
		head, err := encrypted.Head(ctx, b.Blobs, name)
		if errors.Is(err, blob.ErrNotFound) || errors.Is(err, blob.ErrCorrupt) {
			continue // removed meanwhile, or inconclusive
		}
		if err != nil {
			return nil, false, err
		}
		some = true
		if id, err := encrypted.KeyOf(head); err == nil {
			return &id, true, nil
		}
	}
	return nil, some, nil
}

// marking adds the mark of an encrypted store to its first commit, so that data and
// mark appear together. A store that is only read stays unchanged.
type marking struct {
	kv.Store
	done *atomic.Bool
}

// Commit implements kv.Store.
func (m *marking) Commit(ctx context.Context, b *kv.Batch) error {
	if m.done.Load() || slices.ContainsFunc(b.Set, func(s kv.Set) bool { return s.Key == sealed.MarkKey }) {
		return m.Store.Commit(ctx, b)
	}
	marked := *b
	marked.Set = append(slices.Clip(b.Set), sealed.Mark())
	err := m.Store.Commit(ctx, &marked)
	if err == nil {
		m.done.Store(true)
	}
	return err
}

// mark adds the mark of an encrypted store at once. It first removes plain files that
// earlier releases left beside the store, so that the mark implies their absence. It
// skips both for a read-only store.
func (db *DB) mark(ctx context.Context) error {
	_, err := db.dropIndexes(func(f workspace.IndexFile) bool { return !f.Sealed })
	if err == nil {
		err = db.seal.Mark(ctx)
	}
	if errors.Is(err, blob.ErrReadOnly) || errors.Is(err, blob.ErrFull) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		return nil
	}
	return err
}

// explain adds advice for a store that does not match its keyring.
func explain(err error) error {
	switch {
	case errors.Is(err, ErrNoKeyring):
		return fmt.Errorf("%w; put %s back from a backup: without it nothing can be read", err, KeyringName)
	case errors.Is(err, ErrNotEncrypted):
		return fmt.Errorf("%w; if %s belongs to another store, remove it", err, KeyringName)
	}
	return err
}
