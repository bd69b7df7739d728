package objectblob_test

import (
	"context"
	"fmt"
	"os"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/objectblob"
	"github.com/stet-dev/stet/pack"
)

func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	store := objectblob.New(pack.NewDir(dir), "copies/")
	hello := blob.New([]byte("hello"))
	fmt.Println(store.Put(ctx, hello))
	data, err := store.Get(ctx, hello.ID)
	fmt.Println(string(data), err)
	fmt.Println(store.Key(hello.ID)[:14])
	// Output:
	// <nil>
	// hello <nil>
	// copies/2c/2cf2
}
