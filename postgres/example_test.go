package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/internal/realservers"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/postgres"
)

// Two nodes share a database: what one commits, the other reads.
func Example() {
	ctx := context.Background()
	// Elsewhere: postgres://user@host1,host2/database?target_session_attrs=read-write
	dsn, err := realservers.PostgresDatabase()
	if err != nil {
		log.Fatal(err)
	}
	first, err := postgres.Open(ctx, dsn, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer first.Close()
	second, err := postgres.Open(ctx, dsn, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer second.Close()
	writer, _ := first.Tenant("acme")
	reader, _ := second.Tenant("acme")

	hello := blob.New([]byte("hello"))
	err = blob.Checked(writer.Blobs()).Put(ctx, hello)
	fmt.Println("put:", err)
	err = writer.Rows().Commit(ctx, &kv.Batch{
		Expect: []kv.Expect{{Key: "head:c1"}}, // nobody has made it yet
		Set:    []kv.Set{{Key: "head:c1", Value: hello.ID.Bytes()}},
		Refs:   []blob.ID{hello.ID},
	})
	fmt.Println("commit:", err)

	row, _ := reader.Rows().Get(ctx, "head:c1")
	id, _ := blob.IDFromBytes(row.Value)
	data, err := reader.Blobs().Get(ctx, id)
	fmt.Println("read elsewhere:", string(data), err)

	other, _ := second.Tenant("another")
	_, err = other.Blobs().Get(ctx, id)
	fmt.Println("another tenant finds it:", !errors.Is(err, blob.ErrNotFound))
	// Output:
	// put: <nil>
	// commit: <nil>
	// read elsewhere: hello <nil>
	// another tenant finds it: false
}
