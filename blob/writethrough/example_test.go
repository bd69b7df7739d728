package writethrough_test

import (
	"context"
	"fmt"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/blob/writethrough"
)

func Example() {
	ctx := context.Background()
	local, remote := memblob.New(), memblob.New()
	store := writethrough.New(local, remote, nil)

	shared, private := blob.New([]byte("shared")), blob.New([]byte("private"))
	private.LocalOnly = true
	fmt.Println(store.Put(ctx, shared, private))
	fmt.Println(store.Flush(ctx)) // now the remote has what it should have
	fmt.Println("local:", local.Len(), "remote:", remote.Len())
	fmt.Println(store.Close(ctx))
	// Output:
	// <nil>
	// <nil>
	// local: 2 remote: 1
	// <nil>
}
