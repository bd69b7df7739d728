package compressed_test

import (
	"bytes"
	"context"
	"fmt"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/compressed"
	"github.com/stet-dev/stet/blob/memblob"
)

func Example() {
	ctx := context.Background()
	inner := memblob.New()
	store := blob.Checked(compressed.New(inner, nil))

	page := blob.New(bytes.Repeat([]byte("the quick brown fox jumps over the lazy dog\n"), 1000))
	if err := store.Put(ctx, page); err != nil {
		fmt.Println(err)
		return
	}
	_ = inner.List(ctx, blob.ID{}, func(i blob.Info) error {
		fmt.Println(len(page.Data), "bytes take less than 1%:", i.Stored < int64(len(page.Data)/100))
		return nil
	})
	data, err := store.Get(ctx, page.ID)
	fmt.Println(bytes.Equal(data, page.Data), err)
	// Output:
	// 44000 bytes take less than 1%: true
	// true <nil>
}
