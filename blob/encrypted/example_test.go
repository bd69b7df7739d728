package encrypted_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/encrypted"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/keyring"
)

func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "encrypted")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	ring, err := keyring.Create(filepath.Join(dir, "keys.json"), keyring.Raw(bytes.Repeat([]byte{7}, 32)))
	if err != nil {
		fmt.Println(err)
		return
	}

	below := memblob.New()
	layer := encrypted.New(below, ring, &encrypted.Options{Lister: below, Sweeper: below})
	store := blob.Checked(layer)
	hello := blob.New([]byte("hello"))
	if err := store.Put(ctx, hello); err != nil {
		fmt.Println(err)
		return
	}
	data, err := store.Get(ctx, hello.ID)
	fmt.Println(string(data), err)

	has, _ := below.Has(ctx, hello.ID, layer.Name(hello.ID))
	fmt.Println("below, under the id and under the name:", has)
	// Output:
	// hello <nil>
	// below, under the id and under the name: [false true]
}
