package pack_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/pack"
	"github.com/stet-dev/stet/sqlite"
)

// rebasing gives a blob another base once it was described.
type rebasing struct {
	*sqlite.Blobs
	rebase func() error
}

func (r *rebasing) Kept(ctx context.Context, id blob.ID) (blob.Blob, error) {
	if err := r.rebase(); err != nil {
		return blob.Blob{}, err
	}
	return r.Blobs.Kept(ctx, id)
}

// TestABlobThatGetsABaseIsNotSealedWithoutIt has a layer above decide late what a
// blob leans on, while it is packed.
func TestABlobThatGetsABaseIsNotSealedWithoutIt(t *testing.T) {
	db, err := sqlite.Open(t.Context(), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	one, base := blob.New([]byte("one")), blob.New([]byte("what it will lean on"))
	key := keyspace.Save("c1", 1)
	err = db.Blobs().Put(t.Context(), one, base)
	if err == nil {
		err = db.Rows().Commit(t.Context(), &kv.Batch{Set: []kv.Set{{Key: key, Value: []byte("save")}}, Refs: []blob.ID{one.ID}})
	}
	if err != nil {
		t.Fatal(err)
	}
	leaning := one
	leaning.Base = base.ID
	driver := &rebasing{db.Blobs(), func() error { return db.Blobs().Replace(t.Context(), leaning) }}
	s := pack.New(driver, db.Rows(), memblob.NewObjects(), nil)
	gather := func(ctx context.Context) (pack.Contents, error) {
		row, err := db.Rows().Get(ctx, key)
		return pack.Contents{Rows: []kv.Row{row}, Blobs: []blob.ID{one.ID}}, err
	}
	if _, err := s.Seal(t.Context(), "c1", gather); !errors.Is(err, pack.ErrChanged) {
		t.Fatalf("Seal = %v, want ErrChanged", err)
	}
	if info, err := s.Seal(t.Context(), "c1", gather); err != nil || info.Blobs != 2 {
		t.Fatalf("Seal again = %+v, %v; want both blobs", info, err)
	}
}
