package stetblob

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"strings"
	"testing"

	"gocloud.dev/blob"
	"gocloud.dev/blob/driver"
	"gocloud.dev/blob/drivertest"
	"gocloud.dev/gcerrors"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/document"
)

type harness struct{ db *stet.DB }

func (h *harness) MakeDriver(context.Context) (driver.Bucket, error) {
	return open(h.db.Blobs(), h.db.Rows(), "bucket", nil), nil
}

func (h *harness) MakeDriverForNonexistentBucket(context.Context) (driver.Bucket, error) {
	return nil, nil
}
func (h *harness) HTTPClient() *http.Client         { return nil }
func (h *harness) SupportsCopy() bool               { return true }
func (h *harness) SupportsNonSlashDelimiters() bool { return true }

func (h *harness) Close() {
	if err := h.db.Close(); err != nil {
		panic(err)
	}
}

// TestConformance runs the suite of the Go CDK on an embedded store.
func TestConformance(t *testing.T) {
	make := func(ctx context.Context, t *testing.T) (drivertest.Harness, error) {
		db, err := stet.Open(ctx, t.TempDir(), nil)
		return &harness{db}, err
	}
	drivertest.RunConformanceTests(t, make, []drivertest.AsTest{documents{}})
}

// documents expects the document of an object.
type documents struct{}

func (documents) Name() string { return "documents" }

func (documents) BucketCheck(b *blob.Bucket) error {
	var store *document.Store
	if !b.As(&store) || store == nil {
		return errors.New("a bucket does not give its store")
	}
	return nil
}

func (documents) ErrorCheck(*blob.Bucket, error) error     { return nil }
func (documents) BeforeWrite(func(any) bool) error         { return nil }
func (documents) BeforeCopy(func(any) bool) error          { return nil }
func (documents) BeforeList(func(any) bool) error          { return nil }
func (documents) BeforeSign(func(any) bool) error          { return nil }
func (documents) BeforeRead(as func(any) bool) error       { return given(as) }
func (documents) BeforeDelete(as func(any) bool) error     { return given(as) }
func (documents) AttributesCheck(a *blob.Attributes) error { return given(a.As) }
func (documents) ReaderCheck(r *blob.Reader) error         { return given(r.As) }
func (documents) ListObjectCheck(o *blob.ListObject) error {
	if o.IsDir {
		return nil
	}
	return given(o.As)
}

func given(as func(any) bool) error {
	var doc document.Document
	if !as(&doc) || doc.Version == "" {
		return errors.New("an object does not give its document")
	}
	return nil
}

// The order of keys is that of the names of documents.
func TestEscape(t *testing.T) {
	keys := []string{"\x00", "\x01", "\x1f", " ", " a", "!", "a", "a\x00", "a b", "a!", "ab", "}", "~", "~7e", "\x7f", "\u0080", "ä", "\U0010FFFF"}
	for i, key := range keys {
		name := escape(key)
		if back, err := unescape(name); err != nil || back != key {
			t.Errorf("%q became %q and %q, %v", key, name, back, err)
		}
		for j := range i {
			if cmp.Compare(escape(keys[j]), name) != cmp.Compare(keys[j], key) {
				t.Errorf("%q and %q change their order: %q, %q", keys[j], key, escape(keys[j]), name)
			}
		}
	}
	for _, name := range []string{" ", "~", "a~7", " zz"} {
		if key, err := unescape(name); err == nil {
			t.Errorf("%q is %q", name, key)
		}
	}
}

// A large object is kept in a file until it is complete. Nothing of it is left behind by a
// writer that is canceled, and a content with another MD5 is refused.
func TestLargeObjects(t *testing.T) {
	temp := t.TempDir()
	db, err := stet.Open(t.Context(), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	b := OpenBucket(db.Blobs(), db.Rows(), "bucket", &Options{TempDir: temp})
	large := bytes.Repeat([]byte("0123456789"), maxMemory/4)
	if err := b.WriteAll(t.Context(), "large", large, nil); err != nil {
		t.Fatal(err)
	}
	r, err := b.NewRangeReader(t.Context(), "large", maxMemory, 25, nil)
	if err != nil {
		t.Fatal(err)
	}
	var part bytes.Buffer
	if _, err := r.WriteTo(&part); err != nil || part.String() != string(large[maxMemory:maxMemory+25]) {
		t.Errorf("%q, %v", part.String(), err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	w, err := b.NewWriter(ctx, "canceled", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(large); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := w.Close(); !errors.Is(err, context.Canceled) {
		t.Errorf("close of a canceled writer: %v", err)
	}
	err = b.WriteAll(t.Context(), "wrong", large, &blob.WriterOptions{ContentMD5: bytes.Repeat([]byte{1}, 16)})
	if err == nil {
		t.Error("a wrong MD5 is accepted")
	}
	full := OpenBucket(db.Blobs(), db.Rows(), "bucket", &Options{TempDir: temp + "/none"})
	if w, err = full.NewWriter(t.Context(), "cut", nil); err != nil {
		t.Fatal(err)
	}
	for range 3 { // the first part fits into memory
		_, e := w.Write(large[:maxMemory/2+1])
		err = errors.Join(err, e)
	}
	if err == nil {
		t.Error("there is a place for a large object")
	}
	if err := w.Close(); err == nil {
		t.Error("close after a write that failed")
	}
	for _, key := range []string{"canceled", "wrong", "cut"} {
		if ok, err := b.Exists(t.Context(), key); err != nil || ok {
			t.Errorf("%s exists: %v, %v", key, ok, err)
		}
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("files are left: %v, %v", left, err)
	}
	if err := b.WriteAll(t.Context(), strings.Repeat("x", 1025), nil, nil); gcerrors.Code(err) != gcerrors.InvalidArgument {
		t.Errorf("a long key: %v", err)
	}
}

func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "bucket-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	db, err := stet.Open(ctx, dir, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()

	bucket := OpenBucket(db.Blobs(), db.Rows(), "files", nil)
	defer bucket.Close()
	if err := bucket.WriteAll(ctx, "2026/report.txt", []byte("all is well"), nil); err != nil {
		log.Fatal(err)
	}
	data, err := bucket.ReadAll(ctx, "2026/report.txt")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(data))
	// Output: all is well
}
