package memkv_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/kv/memkv"
)

func Example() {
	ctx := context.Background()
	rows := memkv.New(nil)

	create := &kv.Batch{
		Expect: []kv.Expect{{Key: "head:c1"}}, // version 0: must not exist yet
		Set:    []kv.Set{{Key: "head:c1", Value: []byte("root 1")}},
	}
	fmt.Println(rows.Commit(ctx, create))
	fmt.Println(errors.Is(rows.Commit(ctx, create), kv.ErrConflict))

	row, err := rows.Get(ctx, "head:c1")
	fmt.Printf("%s %v\n", row.Value, err)
	// Output:
	// <nil>
	// true
	// root 1 <nil>
}
