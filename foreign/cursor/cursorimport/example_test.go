package cursorimport_test

import (
	"context"
	"fmt"
	"log"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/foreign/cursor"
	"github.com/stet-dev/stet/foreign/cursor/cursorimport"
	"github.com/stet-dev/stet/kv/memkv"
)

// Import everything, twice: the second import has nothing to add.
func Example() {
	ctx := context.Background()
	src, err := cursor.Open(ctx, "../testdata/state.vscdb", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer src.Close()
	mem := memblob.New()
	dst := cursorimport.Target{Blobs: blob.Checked(mem), Rows: memkv.New(mem)}
	for range 2 {
		r, err := cursorimport.Import(ctx, src, dst, nil)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(r.Conversations, "conversations,", r.Messages, "messages,", r.Checkpoints, "checkpoints,", len(r.Skipped), "skipped")
	}
	// Output:
	// 2 conversations, 4 messages, 4 checkpoints, 0 skipped
	// 0 conversations, 0 messages, 0 checkpoints, 3 skipped
}
