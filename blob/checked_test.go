package blob_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/blobtest"
	"github.com/stet-dev/stet/blob/memblob"
)

func TestCheckedKeepsTheContract(t *testing.T) {
	open := func(*testing.T) blob.Store { return blob.Checked(memblob.New()) }
	blobtest.Run(t, open)
	blobtest.RunModel(t, open)
}

// plain hides that a store can stream, so that the helpers must do without.
type plain struct{ blob.Store }

func TestCheckedOverAStoreThatCannotStream(t *testing.T) {
	blobtest.RunWith(t, func(*testing.T) blob.Store { return blob.Checked(plain{memblob.New()}) },
		&blobtest.Options{MaxBytes: 2 << 20})
}

func TestCheckedNamesBothIDsOfAMismatch(t *testing.T) {
	want, got := blob.Sum([]byte("claimed")), blob.Sum([]byte("real"))
	err := blob.Checked(memblob.New()).Put(t.Context(), blob.Blob{ID: want, Data: []byte("real")})
	var mismatch *blob.MismatchError
	if !errors.As(err, &mismatch) || mismatch.Want != want || mismatch.Got != got {
		t.Errorf("got %v, want a MismatchError of %s and %s", err, want, got)
	}
}

func TestCheckedVerifiesExtensionsThatNoBuilderMade(t *testing.T) {
	s := blob.Checked(memblob.New())
	like := blob.New([]byte("0123456789"))
	if err := s.Put(t.Context(), like); err != nil {
		t.Fatal(err)
	}
	good := blob.Blob{ID: blob.Sum([]byte("01234x")), Data: []byte("x"), Like: like.ID, Keep: 5}
	if err := s.Put(t.Context(), good); err != nil {
		t.Errorf("right extension: %v", err)
	}
	bad := good
	bad.ID = blob.Sum([]byte("something else"))
	if err := s.Put(t.Context(), bad); !errors.Is(err, blob.ErrMismatch) {
		t.Errorf("wrong extension: got %v, want ErrMismatch", err)
	}
	if has, err := s.Has(t.Context(), bad.ID); err != nil || has[0] {
		t.Errorf("wrong extension is stored: %v, %v", has, err)
	}
}

// TestCheckedNeverReturnsOtherBytes flips every bit and cuts at every length.
func TestCheckedNeverReturnsOtherBytes(t *testing.T) {
	ctx := context.Background()
	content := []byte("a short content")
	id := blob.Sum(content)
	damaged := [][]byte{append(bytes.Clone(content), 0)}
	for bit := range 8 * len(content) {
		data := bytes.Clone(content)
		data[bit/8] ^= 1 << (bit % 8)
		damaged = append(damaged, data)
	}
	for n := range content {
		damaged = append(damaged, bytes.Clone(content[:n]))
	}
	for _, data := range damaged {
		inner := memblob.New()
		if err := inner.Put(ctx, blob.Blob{ID: id, Data: data}); err != nil {
			t.Fatal(err)
		}
		s := blob.Checked(inner)
		if got, err := s.Get(ctx, id); !errors.Is(err, blob.ErrCorrupt) || got != nil {
			t.Fatalf("get of %q: got %q, %v, want ErrCorrupt", data, got, err)
		}
		r, err := blob.Open(ctx, s, id)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(r); !errors.Is(err, blob.ErrCorrupt) {
			t.Fatalf("read of %q: got %v, want ErrCorrupt", data, err)
		}
	}
}

func TestReadExactly(t *testing.T) {
	source := []byte("0123456789")
	for size := int64(0); size < 15; size++ {
		got, err := blob.ReadExactly(bytes.NewReader(source), size)
		if size == 10 {
			if err != nil || !bytes.Equal(got, source) {
				t.Errorf("size 10: got %q, %v", got, err)
			}
		} else if !errors.Is(err, blob.ErrMismatch) {
			t.Errorf("size %d: got %q, %v, want ErrMismatch", size, got, err)
		}
	}
	// An announced size costs nothing until the bytes arrive.
	if _, err := blob.ReadExactly(bytes.NewReader(source), 1<<60); !errors.Is(err, blob.ErrMismatch) {
		t.Errorf("huge size: got %v, want ErrMismatch", err)
	}
}

func TestCheckedIsALayer(t *testing.T) {
	blobtest.RunLayer(t, func(_ *testing.T, inner blob.Store) blob.Store { return blob.Checked(inner) })
}
