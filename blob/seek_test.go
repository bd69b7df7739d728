package blob_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/blobtest"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/blob/retrying"
)

func TestCheckedSourceCanBeTriedAgain(t *testing.T) {
	faulty := blobtest.NewFaulty(memblob.New())
	faulty.FailNth(1, errors.New("passing fault"))
	store := blob.Checked(retrying.New(faulty, nil))
	content := []byte("content that is sent twice")
	source := bytes.NewReader(append([]byte("skipped "), content...))
	if _, err := source.Seek(8, 0); err != nil {
		t.Fatal(err)
	}
	if err := blob.PutFrom(t.Context(), store, blob.Sum(content), source, int64(len(content))); err != nil {
		t.Fatalf("PutFrom over a store that fails once: %v", err)
	}
	if got, err := store.Get(t.Context(), blob.Sum(content)); err != nil || !bytes.Equal(got, content) {
		t.Errorf("Get = %q, %v", got, err)
	}
}
