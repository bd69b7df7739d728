package stet

import (
	"context"
	"errors"
	"fmt"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/encrypted"
	"github.com/stet-dev/stet/keyring"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/kv/sealed"
	"github.com/stet-dev/stet/sqlite"
	"github.com/stet-dev/stet/workspace"
)

// ErrKeyInUse says that something is still sealed with a key that was to be removed.
var ErrKeyInUse = errors.New("a retired key is still in use")

// KeyUse counts what is sealed with a key.
type KeyUse struct {
	Blobs, Rows int64 // in the store
	Packed      int64 // blobs and rows of sealed conversations
	Indexes     int64 // stat indexes, which may be removed
}

// needed tells whether something would be lost with the key.
func (u KeyUse) needed() bool { return u.Blobs+u.Rows+u.Packed > 0 }

// PruneResult tells what PruneKeys found and did.
type PruneResult struct {
	// Use is what was found, by key. Keys with which nothing is sealed are missing.
	Use map[keyring.KeyID]KeyUse
	// Unreadable counts blobs and rows that do not say what they are sealed with. No
	// key opens them.
	Unreadable int64
	// Removed are the keys that the keyring no longer has.
	Removed []keyring.KeyID
}

// PruneKeys removes the retired keys of the encrypted store in dir from its keyring.
// It looks at everything that the store holds; if something is still sealed with one
// of them, nothing changes and the error wraps ErrKeyInUse: see DB.Reencrypt. While
// it looks nobody can open the store to write to it, and it fails with kv.ErrBusy if
// somebody has: a process that was begun before a rotation seals with the old key.
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
	if result, err = db.keyUse(ctx); err != nil {
		return result, fmt.Errorf("prune keys of %s: %w", dir, err)
	}
	var retired []keyring.KeyID
	for _, k := range db.ring.List() {
		if k.Active {
			continue
		}
		if use := result.Use[k.ID]; use.needed() {
			return result, fmt.Errorf("prune keys of %s: %w: key %s seals %d blobs, %d rows and %d parts of sealed conversations",
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

// dropStaleIndexes removes stat indexes that the active key did not seal.
func (db *DB) dropStaleIndexes() error {
	active, err := db.ring.Active()
	if err == nil {
		_, err = db.dropIndexes(func(f workspace.IndexFile) bool { return !f.Sealed || f.Key != active.ID() })
	}
	return err
}

// keyUse looks at everything that an embedded store holds.
func (db *DB) keyUse(ctx context.Context) (PruneResult, error) {
	c := &keyCounter{PruneResult{Use: make(map[keyring.KeyID]KeyUse)}}
	blobs := db.engine.Blobs()
	var names []blob.ID
	err := blobs.List(ctx, blob.ID{}, func(i blob.Info) error { names = append(names, i.ID); return nil })
	for _, name := range names {
		if err != nil {
			return c.PruneResult, err
		}
		var head []byte
		head, err = headOf(ctx, blobs, name)
		if errors.Is(err, blob.ErrNotFound) || errors.Is(err, blob.ErrCorrupt) {
			c.Unreadable++
			err = nil
			continue
		}
		c.blob(head, func(u *KeyUse) { u.Blobs++ })
	}
	if err != nil {
		return c.PruneResult, err
	}
	for row, err := range db.packs.Bare().Scan(ctx, kv.Range{}, kv.ScanOptions{}) {
		if err != nil {
			return c.PruneResult, err
		}
		c.row(row, func(u *KeyUse) { u.Rows++ })
	}
	packed := func(u *KeyUse) { u.Packed++ }
	err = db.packs.Walk(ctx, encrypted.HeaderSize,
		func(row kv.Row) error { c.row(row, packed); return nil },
		func(_ blob.ID, head []byte) error { c.blob(head, packed); return nil })
	if err != nil {
		return c.PruneResult, err
	}
	_, err = db.dropIndexes(func(f workspace.IndexFile) bool {
		c.add(f.Key, func(u *KeyUse) { u.Indexes++ })
		return false
	})
	return c.PruneResult, err
}

// keyCounter counts by key.
type keyCounter struct{ PruneResult }

func (c *keyCounter) add(id keyring.KeyID, count func(*KeyUse)) {
	use := c.Use[id]
	count(&use)
	c.Use[id] = use
}

func (c *keyCounter) blob(head []byte, count func(*KeyUse)) {
	id, err := encrypted.KeyOf(head)
	if err != nil {
		c.Unreadable++
		return
	}
	c.add(id, count)
}

func (c *keyCounter) row(row kv.Row, count func(*KeyUse)) {
	id, err := sealed.KeyOf(row)
	if err != nil {
		c.Unreadable++
		return
	}
	c.add(id, count)
}
