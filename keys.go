package stet

import (
	"context"
	"errors"
	"fmt"

	"github.com/stet-dev/stet/fault"
	"github.com/stet-dev/stet/keyring"
	"github.com/stet-dev/stet/sqlite"
	"github.com/stet-dev/stet/upkeep"
	"github.com/stet-dev/stet/workspace"
)

// ErrKeyInUse says that something is still sealed with a key that was to be removed.
var ErrKeyInUse = fault.Named(fault.Conflict, "key-in-use", "a retired key is still in use")

// Reencrypt encrypts with the active key everything that is sealed with a retired one. It
// may be interrupted and called again. progress, if set, is called for every page. Data
// in packs cannot be changed in place, so archived conversations are brought back.
func (db *DB) Reencrypt(ctx context.Context, progress func()) error {
	if err := db.upkeep.Reencrypt(ctx, progress); err != nil || db.engine == nil {
		return err
	}
	return db.dropStaleIndexes()
}

// PruneResult reports what PruneKeys found and did.
type PruneResult struct {
	upkeep.KeyCount
	// Removed are the keys that the keyring no longer has.
	Removed []keyring.KeyID
}

// PruneKeys removes the retired keys of the encrypted store in dir from its keyring.
// It checks all data of the store; if something is still sealed with one of them,
// nothing changes and the error wraps ErrKeyInUse: see DB.Reencrypt. During the check
// the store cannot be opened for writing, and PruneKeys fails with kv.ErrBusy if it
// is open: a process started before a rotation still seals with the old key.
func PruneKeys(ctx context.Context, dir string, unlock keyring.Unlock) (result PruneResult, err error) {
	release, err := sqlite.Alone(dir)
	if err != nil {
		return result, fmt.Errorf("prune keys of %s: %w", dir, err)
	}
	defer func() { err = errors.Join(err, release()) }()
	db, err := Open(ctx, dir, &Options{Unlock: &unlock, SQLite: &sqlite.Options{ReadOnly: true}})
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if result.KeyCount, err = db.countKeys(ctx); err != nil {
		return result, fmt.Errorf("prune keys of %s: %w", dir, err)
	}
	var retired []keyring.KeyID
	for _, k := range db.ring.List() {
		if k.Active {
			continue
		}
		if use := result.Use[k.ID]; use.Needed() {
			return result, fmt.Errorf("prune keys of %s: %w: key %s seals %d blobs, %d rows and %d parts of archived conversations",
				dir, ErrKeyInUse, k.ID, use.Blobs, use.Rows, use.Packed)
		}
		retired = append(retired, k.ID)
	}
	if len(retired) == 0 {
		return result, nil
	}
	if err := db.dropStaleIndexes(); err != nil {
		return result, err
	}
	if err := db.ring.Remove(retired...); err != nil {
		return result, err
	}
	result.Removed = retired
	return result, nil
}

// countKeys checks all data of an embedded store.
func (db *DB) countKeys(ctx context.Context) (upkeep.KeyCount, error) {
	count, err := db.upkeep.CountKeys(ctx, db.engine.Blobs())
	if err != nil {
		return count, err
	}
	_, err = db.dropIndexes(func(f workspace.IndexFile) bool {
		count.Add(f.Key, func(u *upkeep.KeyUse) { u.Indexes++ })
		return false
	})
	return count, err
}

// dropStaleIndexes removes stat indexes that the active key did not seal.
func (db *DB) dropStaleIndexes() error {
	active, err := db.ring.Active()
	if err == nil {
		_, err = db.dropIndexes(func(f workspace.IndexFile) bool { return !f.Sealed || f.Key != active.ID() })
	}
	return err
}
