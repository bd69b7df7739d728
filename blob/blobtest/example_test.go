package blobtest_test

import (
	"context"
	"fmt"

	"github.com/stet-dev/stet/blob/blobtest"
	"github.com/stet-dev/stet/blob/memblob"
)

// The cases also run outside go test, as against a bucket that a user names.
func ExampleCases() {
	store, broken := memblob.New(), 0
	for _, c := range blobtest.Cases() {
		if c.Bytes > 1<<20 {
			continue
		}
		if err := c.Func(context.Background(), store); err != nil {
			fmt.Println(c.Name, err)
			broken++
		}
	}
	fmt.Println("broken promises:", broken)
	// Output: broken promises: 0
}
