package mirror_test

import (
	"context"
	"fmt"
	"os"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/mirror"
	"github.com/stet-dev/stet/sqlite"
)

func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	engine, err := sqlite.Open(ctx, dir, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer engine.Close()

	remote := memblob.New()
	store := mirror.New(blob.Checked(engine.Blobs()), engine.Blobs(), mirror.Remote{Name: "backup", Blobs: remote}, nil)
	store.Attach(engine.Rows())
	defer store.Close()
	fmt.Println(store.Put(ctx, blob.New([]byte("hello"))))
	_, err = store.Send(ctx, nil)
	fmt.Println("remote:", remote.Len(), err)
	// Output:
	// <nil>
	// remote: 1 <nil>
}
