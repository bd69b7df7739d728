package kv_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/kv/memkv"
)

// Two writers start from the same version; the second is told.
func ExampleStore_commit() {
	ctx := context.Background()
	var store kv.Store = memkv.New(nil)
	_ = store.Commit(ctx, &kv.Batch{Set: []kv.Set{{Key: "head:c1", Value: []byte("root 1")}}})

	row, _ := store.Get(ctx, "head:c1")
	for _, root := range []string{"root 2", "another root 2"} {
		err := store.Commit(ctx, &kv.Batch{
			Expect: []kv.Expect{{Key: "head:c1", Version: row.Version}},
			Set:    []kv.Set{{Key: "head:c1", Value: []byte(root)}},
		})
		fmt.Println(root, "conflict:", errors.Is(err, kv.ErrConflict))
	}
	row, _ = store.Get(ctx, "head:c1")
	fmt.Printf("%s\n", row.Value)
	// Output:
	// root 2 conflict: false
	// another root 2 conflict: true
	// root 2
}
