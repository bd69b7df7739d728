package stet

import (
	"errors"
	"testing"

	"github.com/stet-dev/stet/blob"
)

// TestStoredBlobsOfALaterKey rotates while a caller moves blobs as they are stored: the
// store that told the same sealing does not have the new key.
func TestStoredBlobsOfALaterKey(t *testing.T) {
	ctx := t.Context()
	db := openTest(t, key)
	before, after := blob.New([]byte("before")), blob.New([]byte("after"))
	must(t, db.Blobs().Put(ctx, before))
	kept := db.Stored()
	must(t, db.Ring().Rotate())
	must(t, db.Blobs().Put(ctx, after))
	must(t, db.Blobs().Flush(ctx))
	if one, err := kept.Get(ctx, kept.Name(before.ID)); err != nil || len(one.Data) == 0 {
		t.Errorf("before: %d bytes, %v", len(one.Data), err)
	}
	if _, err := kept.Get(ctx, kept.Name(after.ID)); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("after: %v, want that it is not found", err)
	}
	fresh := db.Stored()
	if _, err := fresh.Get(ctx, fresh.Name(after.ID)); err != nil || fresh.Sealing() == kept.Sealing() {
		t.Errorf("read again: %v, sealing as before: %v", err, fresh.Sealing() == kept.Sealing())
	}
}
