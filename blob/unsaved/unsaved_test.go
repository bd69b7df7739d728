package unsaved_test

import (
	"errors"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/blobtest"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/blob/unsaved"
)

func TestContract(t *testing.T) {
	blobtest.Run(t, func(t *testing.T) blob.Store {
		s := unsaved.New(memblob.New(), nil)
		t.Cleanup(func() { s.Close() })
		return blob.Checked(s)
	})
}

// What is put can be read back, and the store below does not get it.
func TestNothingIsStored(t *testing.T) {
	ctx := t.Context()
	under := memblob.New()
	old, fresh, more := blob.New([]byte("old")), blob.New([]byte("fresh")), blob.New([]byte("more"))
	if err := under.Put(ctx, old); err != nil {
		t.Fatal(err)
	}
	s := unsaved.New(under, &unsaved.Options{MaxBytes: 6})
	if err := s.Put(ctx, fresh, more); err != nil {
		t.Fatal(err)
	}
	for _, b := range []blob.Blob{old, fresh} {
		if data, err := s.Get(ctx, b.ID); err != nil || string(data) != string(b.Data) {
			t.Errorf("got %q, %v, want %q", data, err, b.Data)
		}
	}
	if _, err := s.Get(ctx, more.ID); !errors.Is(err, blob.ErrTooLarge) {
		t.Errorf("a blob beyond the limit: %v", err)
	}
	if has, err := s.Has(ctx, old.ID, fresh.ID, more.ID); err != nil || !has[0] || !has[1] || !has[2] {
		t.Errorf("has %v, %v", has, err)
	}
	if has, err := under.Has(ctx, fresh.ID, more.ID); err != nil || has[0] || has[1] {
		t.Errorf("the store below has %v, %v", has, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := s.Get(ctx, fresh.ID); !errors.Is(err, blob.ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
}
