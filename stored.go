package stet

import (
	"context"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/sqlite"
)

// StoredBlobs gives access to blobs as a store keeps them, for those who move them
// to a store that can read them so.
type StoredBlobs struct {
	kept    *sqlite.Blobs
	name    func(blob.ID) blob.ID
	sealing string
}

// Stored returns the blobs of an embedded store as they are kept, or nil for
// another backend.
func (db *DB) Stored() *StoredBlobs {
	if db.engine == nil {
		return nil
	}
	s := &StoredBlobs{kept: db.engine.Blobs(), name: func(id blob.ID) blob.ID { return id }, sealing: "none"}
	if db.crypt != nil {
		s.name, s.sealing = db.crypt.Name, db.sealedWith()
	}
	return s
}

// sealedWith is the same for two stores only if both have the same keys. The name
// of a content that everybody knows stands for the key of names, and for the
// tenant.
func (db *DB) sealedWith() string {
	var keys strings.Builder
	known := db.crypt.Name(blob.Sum(nil))
	keys.WriteString(hex.EncodeToString(known[:]))
	for _, k := range db.ring.List() {
		fmt.Fprintf(&keys, " %s", k.ID)
	}
	return keys.String()
}

// Sealing tells how the store seals: two stores that tell the same can read each
// other's blobs.
func (s *StoredBlobs) Sealing() string { return s.sealing }

// Name returns the name under which a blob is kept.
func (s *StoredBlobs) Name(id blob.ID) blob.ID { return s.name(id) }

// Get returns a blob as it is kept, with its base. What is not durable yet is not
// found.
func (s *StoredBlobs) Get(ctx context.Context, name blob.ID) (blob.Blob, error) {
	return s.kept.Kept(ctx, name)
}

// Has reports which names are kept.
func (s *StoredBlobs) Has(ctx context.Context, names ...blob.ID) ([]bool, error) {
	return s.kept.Has(ctx, names...)
}

// Put keeps blobs as they are.
func (s *StoredBlobs) Put(ctx context.Context, blobs ...blob.Blob) error {
	return s.kept.Put(ctx, blobs...)
}
