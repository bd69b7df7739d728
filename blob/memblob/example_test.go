package memblob_test

import (
	"context"
	"fmt"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
)

func Example() {
	ctx := context.Background()
	store := blob.Checked(memblob.New())

	hello := blob.New([]byte("hello"))
	if err := store.Put(ctx, hello); err != nil {
		fmt.Println(err)
		return
	}
	data, err := store.Get(ctx, hello.ID)
	fmt.Println(string(data), err)
	_, err = store.Get(ctx, blob.Sum([]byte("other")))
	fmt.Println(err)
	// Output:
	// hello <nil>
	// blob not found: d9298a10d1b0735837dc4bd85dac641b0f3cef27a47e5d53a54f2f3f5b2fcffa
}
