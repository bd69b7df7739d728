package encrypted

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/sqlite"
)

// between does something after a blob was read for the nth time, in whatever way.
type between struct {
	*sqlite.Blobs
	id   blob.ID
	n    int
	then func()
}

func (b *between) read(id blob.ID) {
	if id != b.id {
		return
	}
	if b.n--; b.n == 0 {
		b.then()
	}
}

func (b *between) Get(ctx context.Context, id blob.ID) ([]byte, error) {
	defer b.read(id)
	return b.Blobs.Get(ctx, id)
}

func (b *between) Open(ctx context.Context, id blob.ID) (io.ReadCloser, error) {
	defer b.read(id)
	return b.Blobs.Open(ctx, id)
}

func newBetween(t *testing.T) *between {
	t.Helper()
	db, err := sqlite.Open(t.Context(), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return &between{Blobs: db.Blobs()}
}

// TestReencryptBesideCollectorAndWriter has a blob that leans on another removed with
// it, and put again as a whole, while it is sealed again.
func TestReencryptBesideCollectorAndWriter(t *testing.T) {
	ctx := t.Context()
	below, ring := newBetween(t), newRing(t)
	s := newStore(below, ring, nil)
	base := blob.New([]byte("what it leans on"))
	leaning := blob.New([]byte("the difference"))
	leaning.Base = base.ID
	whole := blob.Blob{ID: leaning.ID, Data: []byte("all of it")}
	mustPut(t, s, base)
	mustPut(t, s, leaning)
	if err := s.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	rotate(t, ring)
	other := newStore(below.Blobs, ring, nil)
	below.id, below.n = s.Name(leaning.ID), 2 // its head, then all of it
	below.then = func() {
		generation, err := other.Begin(ctx)
		if err == nil {
			_, err = other.Sweep(ctx, generation, blob.SweepOptions{Live: func(blob.ID) bool { return false }})
		}
		if err = errors.Join(err, other.Put(ctx, whole), other.Flush(ctx)); err != nil {
			t.Error(err)
		}
	}
	if _, err := s.Reencrypt(ctx, nil); err != nil {
		t.Fatal(err)
	}
	info, err := below.Info(ctx, s.Name(leaning.ID))
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Get(ctx, leaning.ID)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(got, leaning.Data) {
		has, err := s.Has(ctx, base.ID)
		if err != nil || !has[0] || info.Base != s.Name(base.ID) {
			t.Errorf("it leans on a blob that the store has (%v) and knows of (%s), %v", has, info.Base, err)
		}
	}
}

// TestReencryptBesideCompacting has a large blob exchanged for another form between two
// looks at it.
func TestReencryptBesideCompacting(t *testing.T) {
	ctx := t.Context()
	below, ring := newBetween(t), newRing(t)
	s, other := newStore(below, ring, nil), newStore(below.Blobs, ring, nil)
	base := blob.New([]byte("what it will lean on"))
	mustPut(t, s, base)
	long := make([]byte, maxWhole+2*segmentSize)
	for name, form := range map[string]blob.Blob{
		"shorter":             {Data: make([]byte, maxWhole+segmentSize)},
		"leaning":             {Data: []byte("the difference"), Base: base.ID},
		"leaning and as long": {Data: bytes.Repeat([]byte{1}, len(long)), Base: base.ID},
	} {
		for n := 1; n <= 3; n++ { // its head, then twice all of it
			form.ID = blob.Sum(append([]byte(name), byte(n)))
			mustPut(t, s, blob.Blob{ID: form.ID, Data: long})
			if err := s.Flush(ctx); err != nil {
				t.Fatal(err)
			}
			rotate(t, ring)
			below.id, below.n = s.Name(form.ID), n
			below.then = func() {
				if err := other.Replace(ctx, form); err != nil {
					t.Error(err)
				}
			}
			if _, err := s.Reencrypt(ctx, nil); err != nil {
				t.Errorf("%s after look %d: %v", name, n, err)
			}
			got, err := s.Get(ctx, form.ID)
			switch {
			case err != nil:
				t.Errorf("%s after look %d: %v", name, n, err)
			case bytes.Equal(got, long):
			case !bytes.Equal(got, form.Data):
				t.Errorf("%s after look %d: got %d bytes of neither form", name, n, len(got))
			case listIDs(t, s)[form.ID].Base != form.Base:
				t.Errorf("%s after look %d: it leans on %s, want %s", name, n, listIDs(t, s)[form.ID].Base, form.Base)
			}
		}
	}
}
