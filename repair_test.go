package stet

import (
	"bytes"
	"crypto/rand"
	"errors"
	"testing"

	"github.com/stet-dev/stet/blob"
)

// TestPutRepairsDamagedBlobs damages what lies on the disk, in a row and in an object
// file, alone and as the base of others, and puts the right bytes again.
func TestPutRepairsDamagedBlobs(t *testing.T) {
	for name, key := range map[string][]byte{"plain": nil, "encrypted": key} {
		t.Run(name, func(t *testing.T) {
			ctx, dir := t.Context(), t.TempDir()
			opts := optionsFor(t, dir, key)
			reopen := func() *DB {
				t.Helper()
				db, err := Open(ctx, dir, opts)
				if err != nil {
					t.Fatal(err)
				}
				return db
			}
			text := bytes.Repeat([]byte("a line that is there many times\n"), 1000)
			noise := make([]byte, 3<<20)
			rand.Read(noise)
			base, large := blob.New(text), blob.New(noise)
			leaning := blob.New(append(bytes.Clone(text), "and one more"...))
			leaning.Like = base.ID
			all := []blob.Blob{base, leaning, large}
			db := reopen()
			for _, b := range all {
				if err := db.Blobs().Put(ctx, b); err != nil {
					t.Fatal(err)
				}
			}
			if err := errors.Join(db.Blobs().Flush(ctx), db.Compact(ctx, nil)); err != nil {
				t.Fatal(err)
			}
			for _, b := range []blob.Blob{base, large} {
				name := b.ID
				if db.crypt != nil {
					name = db.crypt.Name(name)
				}
				if err := db.engine.Blobs().Replace(ctx, blob.Blob{ID: name, Data: bytes.Repeat([]byte("rotten"), 1<<18)}); err != nil {
					t.Fatal(err)
				}
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			db = reopen()
			for _, b := range []blob.Blob{base, large} {
				if _, err := db.Blobs().Get(ctx, b.ID); !errors.Is(err, blob.ErrCorrupt) {
					t.Fatalf("get of a damaged blob: got %v, want ErrCorrupt", err)
				}
				if err := db.Blobs().Put(ctx, b); err != nil {
					t.Fatalf("put over a damaged blob: %v", err)
				}
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			db = reopen() // what memory holds proves nothing
			for _, b := range all {
				if got, err := db.Blobs().Get(ctx, b.ID); err != nil || !bytes.Equal(got, b.Data) {
					t.Errorf("get of a repaired blob: got %d bytes, %v, want %d", len(got), err, len(b.Data))
				}
			}
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
