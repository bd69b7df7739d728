package cached_test

import (
	"context"
	"fmt"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/cached"
	"github.com/stet-dev/stet/blob/memblob"
)

func Example() {
	ctx := context.Background()
	slow := memblob.New()
	hello := blob.New([]byte("hello"))
	if err := slow.Put(ctx, hello); err != nil {
		fmt.Println(err)
		return
	}

	store := cached.New(slow, &cached.Options{MaxBytes: 16 << 20})
	for range 3 {
		if _, err := store.Get(ctx, hello.ID); err != nil {
			fmt.Println(err)
		}
	}
	stats := store.Stats()
	fmt.Println("misses:", stats.Misses, "hits:", stats.Hits)
	// Output: misses: 1 hits: 2
}
