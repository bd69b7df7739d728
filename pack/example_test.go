package pack_test

import (
	"context"
	"fmt"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/kv/memkv"
	"github.com/stet-dev/stet/pack"
)

func Example() {
	ctx := context.Background()
	blobs := memblob.New()
	rows := memkv.New(blobs)
	packs := pack.New(pack.Driver{Blobs: blobs, Rows: rows, Objects: memblob.NewObjects(), Lister: blobs}, nil)

	state := blob.New([]byte("what was said"))
	_ = packs.Blobs().Put(ctx, state)
	_ = packs.Rows().Commit(ctx, &kv.Batch{
		Set:  []kv.Set{{Key: keyspace.Head("c1"), Value: []byte(state.ID.String())}},
		Refs: []blob.ID{state.ID},
	})

	info, err := packs.Archive(ctx, "c1", func(ctx context.Context) (pack.Contents, error) {
		row, err := packs.Bare().Get(ctx, keyspace.Head("c1"))
		return pack.Contents{Rows: []kv.Row{row}, Blobs: []blob.ID{state.ID}}, err
	})
	fmt.Println(info.Rows, "row,", info.Blobs, "blob in", info.Objects, "object", err)

	_, err = packs.Bare().Get(ctx, keyspace.Head("c1")) // what a collector sees
	fmt.Println(err)
	row, err := packs.Rows().Get(ctx, keyspace.Head("c1")) // what everybody else sees
	fmt.Println(string(row.Value) == state.ID.String(), err)

	fmt.Println(packs.Unarchive(ctx, "c1"))
	// Output:
	// 1 row, 1 blob in 1 object <nil>
	// row not found: "agentKv:checkpoint:c1"
	// true <nil>
	// <nil>
}
