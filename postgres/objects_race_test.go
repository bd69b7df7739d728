package postgres

import (
	"bytes"
	"sync"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
)

// A call that finds that it was not the only one to put a large blob removes its
// object, unless the row names it. Others of the same blob that wait in memory at
// that moment do not tell.
func TestTheObjectOfTheRowStays(t *testing.T) {
	objects := memblob.NewObjects()
	db := openNode(t, newDatabase(t, 15), &Options{Objects: objects, LargeBytes: 1})
	tenant := newTenant(t, db)
	one := blob.New(bytes.Repeat([]byte("large "), 1000))
	store := tenant.Blobs()
	if err := store.Put(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	if err := store.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	p, err := store.find(t.Context(), one.ID)
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var others sync.WaitGroup
	others.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if err := tenant.put(t.Context(), &record{id: one.ID, size: p.size, object: "another"}); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for range 100 {
		if err := store.discardUnused(t.Context(), &record{id: one.ID, size: p.size, object: p.object}); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	others.Wait()
	if err := store.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, err := store.Get(t.Context(), one.ID); err != nil || !bytes.Equal(got, one.Data) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}
