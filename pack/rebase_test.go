package pack_test

import (
	"context"
	"errors"
	"io"
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

// TestABlobThatGetsABaseIsNotArchivedWithoutIt has a layer above decide late what a
// blob leans on, while it is packed.
func TestABlobThatGetsABaseIsNotArchivedWithoutIt(t *testing.T) {
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
	s := pack.New(pack.Driver{Blobs: driver, Rows: db.Rows(), Objects: memblob.NewObjects(), Rewriter: driver}, nil)
	gather := func(ctx context.Context) (pack.Contents, error) {
		row, err := db.Rows().Get(ctx, key)
		return pack.Contents{Rows: []kv.Row{row}, Blobs: []blob.ID{one.ID}}, err
	}
	if _, err := s.Archive(t.Context(), "c1", gather); !errors.Is(err, pack.ErrChanged) {
		t.Fatalf("Archive = %v, want ErrChanged", err)
	}
	if info, err := s.Archive(t.Context(), "c1", gather); err != nil || info.Blobs != 2 {
		t.Fatalf("Archive again = %+v, %v; want both blobs", info, err)
	}
}

// replacedAt replaces a blob before it is opened for the nth time.
type replacedAt struct {
	*sqlite.Blobs
	by   blob.Blob
	n    int
	seen int
}

func (r *replacedAt) Open(ctx context.Context, id blob.ID) (io.ReadCloser, error) {
	if r.seen++; r.seen == r.n {
		if err := r.Blobs.Replace(ctx, r.by); err != nil {
			return nil, err
		}
	}
	return r.Blobs.Open(ctx, id)
}

// TestALargeBlobThatIsReplacedMeanwhile is the same for one that is not held in
// memory, and is read twice.
func TestALargeBlobThatIsReplacedMeanwhile(t *testing.T) {
	one, base := blob.New([]byte("one that is large enough")), blob.New([]byte("base"))
	same, short := one, one
	same.Base = base.ID
	short.Data = []byte("another form of one")
	for name, by := range map[string]blob.Blob{"leans": same, "shorter": short} {
		for n := 1; n <= 2; n++ {
			db, err := sqlite.Open(t.Context(), t.TempDir(), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			key := keyspace.Save("c1", 1)
			err = db.Blobs().Put(t.Context(), one, base)
			if err == nil {
				err = db.Rows().Commit(t.Context(), &kv.Batch{Set: []kv.Set{{Key: key, Value: []byte("save")}}, Refs: []blob.ID{one.ID}})
			}
			if err != nil {
				t.Fatal(err)
			}
			driver := &replacedAt{Blobs: db.Blobs(), by: by, n: n}
			s := pack.New(pack.Driver{Blobs: driver, Rows: db.Rows(), Objects: memblob.NewObjects(), Rewriter: driver}, &pack.Options{ObjectBytes: 16})
			_, err = s.Archive(t.Context(), "c1", func(ctx context.Context) (pack.Contents, error) {
				row, err := db.Rows().Get(ctx, key)
				return pack.Contents{Rows: []kv.Row{row}, Blobs: []blob.ID{one.ID}}, err
			})
			if name == "shorter" && n == 1 { // one form or the other, as a whole
				if err != nil {
					t.Errorf("%s before read %d: Archive = %v", name, n, err)
				}
			} else if !errors.Is(err, pack.ErrChanged) {
				t.Errorf("%s before read %d: Archive = %v, want ErrChanged", name, n, err)
			}
		}
	}
}
