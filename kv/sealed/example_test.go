package sealed_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/kv/memkv"
	"github.com/stet-dev/stet/kv/sealed"
)

func Example() {
	ctx := context.Background()
	below := memkv.New(nil)
	rows := sealed.New(below, nil)
	err := rows.Commit(ctx, &kv.Batch{Set: []kv.Set{
		{Key: "head:a", Value: []byte("root of a")},
		{Key: "head:b", Value: []byte("root of b")},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	row, err := rows.Get(ctx, "head:a")
	fmt.Println(string(row.Value), err)

	// An attacker moves a value to another row, below the layer.
	moved, _ := below.Get(ctx, "head:b")
	_ = below.Commit(ctx, &kv.Batch{Set: []kv.Set{{Key: "head:a", Value: moved.Value}}})
	_, err = rows.Get(ctx, "head:a")
	fmt.Println(errors.Is(err, kv.ErrCorrupt), err)
	// Output:
	// root of a <nil>
	// true row is corrupt: "head:a": digest does not match
}
