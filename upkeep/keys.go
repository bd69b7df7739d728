package upkeep

import (
	"context"
	"errors"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/encrypted"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/keyring"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/kv/sealed"
)

// Reencrypt encrypts with the active key what is sealed with a retired one. It may be
// interrupted and called again. progress, if set, is called for every page. Packs
// cannot be changed in place, so archived conversations are brought back.
func (s *Service) Reencrypt(ctx context.Context, progress func()) error {
	if s.stores.Crypt == nil {
		return sealed.ErrNotEncrypted
	}
	if err := s.UnarchiveAll(ctx); err != nil {
		return err
	}
	_, err := s.stores.Crypt.Reencrypt(ctx, &encrypted.ReencryptOptions{
		Progress: func(encrypted.ReencryptResult) error {
			if progress != nil {
				progress()
			}
			return nil
		},
	})
	if err != nil {
		return err
	}
	// Rows in quarantine cannot be opened and stay as they are.
	aside := keyspace.Quarantine()
	for _, rows := range []kv.Range{{End: aside.Start}, {Start: aside.End}} {
		if _, err := s.stores.Sealed.Reseal(ctx, rows); err != nil {
			return err
		}
	}
	return nil
}

// KeyUse counts what is sealed with a key.
type KeyUse struct {
	Blobs, Rows int64 // in the store
	Packed      int64 // blobs and rows of archived conversations
	Indexes     int64 // stat indexes, which may be removed
}

// Needed reports whether anything would be lost with the key.
func (u KeyUse) Needed() bool { return u.Blobs+u.Rows+u.Packed > 0 }

// KeyCount counts by key. It leaves out keys with which nothing is sealed.
type KeyCount struct {
	Use map[keyring.KeyID]KeyUse
	// Unreadable counts blobs and rows that do not say what they are sealed with. No
	// key opens them.
	Unreadable int64
}

// CountKeys reads every blob of a driver, by its stored name, and every row and pack
// of the store, and counts them by the key that seals them.
func (s *Service) CountKeys(ctx context.Context, driver interface {
	blob.Store
	blob.Lister
}) (KeyCount, error) {
	c := &KeyCount{Use: make(map[keyring.KeyID]KeyUse)}
	var names []blob.ID
	err := driver.List(ctx, blob.ID{}, func(i blob.Info) error { names = append(names, i.ID); return nil })
	for _, name := range names {
		if err != nil {
			return *c, err
		}
		var head []byte
		head, err = encrypted.Head(ctx, driver, name)
		if errors.Is(err, blob.ErrNotFound) || errors.Is(err, blob.ErrCorrupt) {
			c.Unreadable++
			err = nil
			continue
		}
		c.blob(head, func(u *KeyUse) { u.Blobs++ })
	}
	if err != nil {
		return *c, err
	}
	for row, err := range s.stores.Bare.Scan(ctx, kv.Range{}, kv.ScanOptions{}) {
		if err != nil {
			return *c, err
		}
		c.row(row, func(u *KeyUse) { u.Rows++ })
	}
	if s.stores.Packs == nil {
		return *c, nil
	}
	packed := func(u *KeyUse) { u.Packed++ }
	err = s.stores.Packs.Walk(ctx, encrypted.HeaderSize,
		func(row kv.Row) error { c.row(row, packed); return nil },
		func(_ blob.ID, head []byte) error { c.blob(head, packed); return nil })
	return *c, err
}

// Add counts one thing that is sealed with a key.
func (c *KeyCount) Add(id keyring.KeyID, count func(*KeyUse)) {
	use := c.Use[id]
	count(&use)
	c.Use[id] = use
}

func (c *KeyCount) blob(head []byte, count func(*KeyUse)) {
	id, err := encrypted.KeyOf(head)
	if err != nil {
		c.Unreadable++
		return
	}
	c.Add(id, count)
}

func (c *KeyCount) row(row kv.Row, count func(*KeyUse)) {
	id, err := sealed.KeyOf(row)
	if err != nil {
		c.Unreadable++
		return
	}
	c.Add(id, count)
}
