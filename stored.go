package stet

import (
	"context"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/encrypted"
	"github.com/stet-dev/stet/keyring"
	"github.com/stet-dev/stet/sqlite"
)

// StoredBlobs gives access to blobs in stored form, for moving them to a store that
// can read it.
type StoredBlobs struct {
	kept    *sqlite.Blobs
	name    func(blob.ID) blob.ID
	sealing string
	keys    map[keyring.KeyID]bool // covered by sealing; nil if nothing is sealed
}

// Stored returns the blobs of an embedded store in stored form, or nil for another
// backend.
func (db *DB) Stored() *StoredBlobs {
	if db.engine == nil {
		return nil
	}
	s := &StoredBlobs{kept: db.engine.Blobs(), name: func(id blob.ID) blob.ID { return id }, sealing: "none"}
	if db.crypt != nil {
		s.name = db.crypt.Name
		s.sealing, s.keys = db.sealedWith()
	}
	return s
}

// sealedWith returns a value that two stores share only if both have the same keys. The
// name of a well-known content stands for the name key and the tenant.
func (db *DB) sealedWith() (string, map[keyring.KeyID]bool) {
	var sealing strings.Builder
	known := db.crypt.Name(blob.Sum(nil))
	sealing.WriteString(hex.EncodeToString(known[:]))
	keys := make(map[keyring.KeyID]bool)
	for _, k := range db.ring.List() {
		fmt.Fprintf(&sealing, " %s", k.ID)
		keys[k.ID] = true
	}
	return sealing.String(), keys
}

// Sealing identifies how the store seals: two stores with the same value can read
// each other's blobs.
func (s *StoredBlobs) Sealing() string { return s.sealing }

// Name returns the stored name of a blob.
func (s *StoredBlobs) Name(id blob.ID) blob.ID { return s.name(id) }

// Get returns a blob in stored form, with its base. It does not find blobs that are
// not durable yet, nor blobs sealed with a key added after Sealing: a store with the
// same value could not read them.
func (s *StoredBlobs) Get(ctx context.Context, name blob.ID) (blob.Blob, error) {
	kept, err := s.kept.Kept(ctx, name)
	if err != nil || s.keys == nil {
		return kept, err
	}
	if key, err := encrypted.KeyOf(kept.Data); err != nil || !s.keys[key] {
		return blob.Blob{}, fmt.Errorf("sealed with another key: %w", blob.NotFound(name))
	}
	return kept, nil
}

// Has reports which names are stored.
func (s *StoredBlobs) Has(ctx context.Context, names ...blob.ID) ([]bool, error) {
	return s.kept.Has(ctx, names...)
}

// Put stores blobs in stored form.
func (s *StoredBlobs) Put(ctx context.Context, blobs ...blob.Blob) error {
	return s.kept.Put(ctx, blobs...)
}
