package memblob_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/blobtest"
	"github.com/stet-dev/stet/blob/memblob"
)

func TestObjectsContract(t *testing.T) {
	bucket := memblob.NewObjects() // shared by all cases, as a live one is
	blobtest.RunObjects(t, func(*testing.T) blob.Objects { return bucket })
	err := bucket.ListObjects(t.Context(), "", "", func(info blob.ObjectInfo) error {
		return fmt.Errorf("%s was left behind", info.Key)
	})
	if err != nil {
		t.Error(err)
	}
}

func TestReaderOutlivesTheObject(t *testing.T) {
	ctx, bucket := t.Context(), memblob.NewObjects()
	if err := bucket.PutObject(ctx, "a", strings.NewReader("content"), 7); err != nil {
		t.Fatal(err)
	}
	r, err := bucket.OpenObject(ctx, "a", 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	if err := bucket.RemoveObjects(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, []byte("content")) {
		t.Errorf("ReadAll: got %q, %v, want %q", got, err, "content")
	}
}

func ExampleNewObjects() {
	ctx := context.Background()
	bucket := memblob.NewObjects()
	if err := bucket.PutObject(ctx, "packs/1", strings.NewReader("hello world"), 11); err != nil {
		fmt.Println(err)
		return
	}
	r, err := bucket.OpenObject(ctx, "packs/1", 6, -1)
	if err != nil {
		fmt.Println(err)
		return
	}
	data, err := io.ReadAll(r)
	fmt.Println(string(data), err)
	// Output: world <nil>
}
