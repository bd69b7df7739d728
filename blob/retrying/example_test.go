package retrying_test

import (
	"context"
	"fmt"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/blobtest"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/blob/retrying"
)

func Example() {
	ctx := context.Background()
	flaky := blobtest.NewFaulty(memblob.New())
	flaky.FailNext(blobtest.OpPut, 2, nil)

	store := retrying.New(flaky, &retrying.Options{InitialWait: time.Millisecond})
	err := store.Put(ctx, blob.New([]byte("hello")))
	fmt.Println(err, "after", flaky.Calls(blobtest.OpPut), "attempts")
	// Output: <nil> after 3 attempts
}
