package stream_test

import (
	"context"
	"fmt"

	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/kv/memkv"
	"github.com/stet-dev/stet/stream"
)

// An answer is written while it is read, and a repeated append is stored once.
func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	blobs := memblob.New()
	streams := stream.New(blobs, memkv.New(blobs), nil)

	const text = "text/plain"
	_, _, _ = streams.Create(ctx, "answers/1", stream.Config{ContentType: text}, nil)
	first := stream.Append{ContentType: text, Data: []byte("To be, "), Producer: &stream.Producer{ID: "model"}}
	_, _ = streams.Append(ctx, "answers/1", first)
	again, _ := streams.Append(ctx, "answers/1", first) // its answer was lost
	fmt.Println("repeated:", again.Duplicate)

	f := streams.Follow(ctx, "answers/1", stream.Offset{}, nil)
	batch, _ := f.Next(ctx)
	fmt.Printf("%s at %s\n", stream.Body(text, batch.Appends), batch.Next)

	_, _ = streams.Append(ctx, "answers/1", stream.Append{ContentType: text, Data: []byte("or not"), Close: true})
	batch, _ = f.Next(ctx)
	fmt.Printf("%s, closed: %v\n", stream.Body(text, batch.Appends), batch.Closed)
	// Output:
	// repeated: true
	// To be,  at 0000000000000001_0000000000000007
	// or not, closed: true
}
