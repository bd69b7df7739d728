package sqlite_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/sqlite"
)

func Example() {
	dir, err := os.MkdirTemp("", "store")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()

	db, err := sqlite.Open(ctx, filepath.Join(dir, "state"), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()

	store := blob.Checked(db.Blobs())
	state := blob.New([]byte("the state of an agent"))
	if err := store.Put(ctx, state); err != nil {
		log.Fatal(err)
	}
	// Blob and row become durable together, with one fsync.
	err = db.Rows().Commit(ctx, &kv.Batch{
		Expect: []kv.Expect{{Key: "head"}}, // there is no head yet
		Set:    []kv.Set{{Key: "head", Value: state.ID.Bytes()}},
		Refs:   []blob.ID{state.ID},
	})
	if err != nil {
		log.Fatal(err)
	}

	head, err := db.Rows().Get(ctx, "head")
	if err != nil {
		log.Fatal(err)
	}
	data, err := store.Get(ctx, blob.ID(head.Value))
	fmt.Printf("%s, %v\n", data, err)
	// Output: the state of an agent, <nil>
}

func ExampleDB_Check() {
	dir, err := os.MkdirTemp("", "store")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	db, err := sqlite.Open(ctx, dir, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	report, err := db.Check(ctx, sqlite.CheckOptions{})
	fmt.Println(len(report.Damage), err)
	// Output: 0 <nil>
}
