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

// StoredBlobs gives access to blobs as a store keeps them, for those who move them
// to a store that can read them so.
type StoredBlobs struct {
	kept    *sqlite.Blobs
	name    func(blob.ID) blob.ID
	sealing string
	keys    map[keyring.KeyID]bool // that sealing tells of; nil where nothing is sealed
}

// Stored returns the blobs of an embedded store as they are kept, or nil for
// another backend.
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

// sealedWith is the same for two stores only if both have the same keys. The name
// of a content that everybody knows stands for the key of names, and for the
// tenant.
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

// Sealing tells how the store seals: two stores that tell the same can read each
// other's blobs.
func (s *StoredBlobs) Sealing() string { return s.sealing }

// Name returns the name under which a blob is kept.
func (s *StoredBlobs) Name(id blob.ID) blob.ID { return s.name(id) }

// Get returns a blob as it is kept, with its base. What is not durable yet is not
// found, nor is what is sealed with a key that came after Sealing: a store that told
// the same could not read it.
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

// Has reports which names are kept.
func (s *StoredBlobs) Has(ctx context.Context, names ...blob.ID) ([]bool, error) {
	return s.kept.Has(ctx, names...)
}

// Put keeps blobs as they are.
func (s *StoredBlobs) Put(ctx context.Context, blobs ...blob.Blob) error {
	return s.kept.Put(ctx, blobs...)
}
