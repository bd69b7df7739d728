package sqlite

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"testing"

	"github.com/stet-dev/stet/blob"
)

// TestShrinkGivesBackWhatReplacedBlobsLeft stores much, replaces it by little, and
// looks at the file.
func TestShrinkGivesBackWhatReplacedBlobsLeft(t *testing.T) {
	db := openTest(t, nil)
	var blobs, small []blob.Blob
	for i := range uint64(300) {
		data := bytes.Repeat(binary.BigEndian.AppendUint64(nil, i), 4000)
		b := blob.New(data)
		blobs = append(blobs, b)
		small = append(small, blob.Blob{ID: b.ID, Data: fmt.Appendf(nil, "now it is %d", i)})
	}
	if err := db.Blobs().Put(t.Context(), blobs...); err != nil {
		t.Fatal(err)
	}
	if err := db.Blobs().Replace(t.Context(), small...); err != nil {
		t.Fatal(err)
	}
	before, err := db.Stats(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Shrink(t.Context()); err != nil {
		t.Fatal(err)
	}
	after, err := db.Stats(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if after.Pages > before.Pages/3 {
		t.Errorf("%d of %d pages are left", after.Pages, before.Pages)
	}
	for _, b := range small {
		if got, err := db.Blobs().Get(t.Context(), b.ID); err != nil || !bytes.Equal(got, b.Data) {
			t.Fatalf("blob %s = %q, %v", b.ID, got, err)
		}
	}
	dir := db.Dir()
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(db.path())
	if err != nil {
		t.Fatal(err)
	}
	if want := after.Pages * after.PageSize; info.Size() != want {
		t.Errorf("the file has %d bytes, want %d", info.Size(), want)
	}
	again, err := Open(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if _, err := again.Check(t.Context(), CheckOptions{}); err != nil {
		t.Errorf("check: %v", err)
	}
}
