package blob_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/cached"
	"github.com/stet-dev/stet/blob/memblob"
)

// A stack reads as a sentence, and checks what goes in and comes out.
func Example() {
	ctx := context.Background()
	store := blob.Checked(cached.New(memblob.New(), nil))

	hello := blob.New([]byte("hello"))
	if err := store.Put(ctx, hello); err != nil {
		fmt.Println(err)
		return
	}
	if err := store.Flush(ctx); err != nil {
		fmt.Println(err)
		return
	}
	data, err := store.Get(ctx, hello.ID)
	fmt.Println(hello.ID.Short(), string(data), err)

	err = store.Put(ctx, blob.Blob{ID: hello.ID, Data: []byte("not hello")})
	fmt.Println(errors.Is(err, blob.ErrMismatch))
	// Output:
	// 2cf24dba5fb0 hello <nil>
	// true
}

// A list grows without being held, hashed or stored as a whole again.
func ExampleBuilder() {
	ctx := context.Background()
	store := memblob.New()

	list := blob.NewBuilder()
	for _, entry := range []string{"one ", "two ", "three "} {
		list.Append([]byte(entry))
		b := list.Blob([]byte("end"))
		if err := store.Put(ctx, b); err != nil {
			fmt.Println(err)
			return
		}
		list.Commit(b)
		whole, err := store.Get(ctx, b.ID)
		fmt.Printf("%q keeps %d bytes and adds %q: %v\n", whole, b.Keep, b.Data, err)
	}
	// Output:
	// "one end" keeps 0 bytes and adds "one end": <nil>
	// "one two end" keeps 4 bytes and adds "two end": <nil>
	// "one two three end" keeps 8 bytes and adds "three end": <nil>
}
