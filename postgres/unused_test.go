package postgres

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/stet-dev/stet/blob/memblob"
)

// nestedObjects calls a function at the first put of an object, and one after every removal.
type nestedObjects struct {
	*memblob.Objects
	put     func()
	removed func()
}

func (o *nestedObjects) PutObject(ctx context.Context, key string, r io.Reader, size int64) error {
	if put := o.put; put != nil {
		o.put = nil
		put()
	}
	return o.Objects.PutObject(ctx, key, r, size)
}

func (o *nestedObjects) RemoveObjects(ctx context.Context, keys ...string) error {
	err := o.Objects.RemoveObjects(ctx, keys...)
	o.removed()
	return err
}

// A blob is stored by another writer while this one writes its object. The object that is
// not needed is removed when no reader looks for the blob there.
func TestUnneededObjectsAreRemovedUnseen(t *testing.T) {
	bucket := &nestedObjects{Objects: memblob.NewObjects()}
	blobs := newTenant(t, openNode(t, newDatabase(t, 15), &Options{Objects: bucket, LargeBytes: 1000})).Blobs()
	b := largeBlob()
	bucket.put = func() { mustPut(t, blobs, b) }
	removals := 0
	bucket.removed = func() {
		removals++
		if _, err := blobs.Get(t.Context(), b.ID); err != nil {
			t.Errorf("get while an unneeded object is removed: %v", err)
		}
	}
	if err := errors.Join(blobs.Put(t.Context(), b), blobs.Flush(t.Context())); err != nil {
		t.Fatal(err)
	}
	if keys := objectsOf(t, bucket); removals != 1 || len(keys) != 1 {
		t.Errorf("%d removals, objects %q", removals, keys)
	}
}
