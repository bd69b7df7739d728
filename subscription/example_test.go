package subscription_test

import (
	"context"
	"fmt"

	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/kv/memkv"
	"github.com/stet-dev/stet/stream"
	"github.com/stet-dev/stet/subscription"
)

// A worker is woken by an append, processes it and says so.
func Example() {
	ctx := context.Background()
	blobs := memblob.New()
	rows := memkv.New(blobs)
	streams := stream.New(blobs, rows, nil)
	subs := subscription.New(streams, rows, nil)

	_, _, _ = streams.Create(ctx, "wakes", stream.Config{ContentType: "application/json"}, nil)
	_, _, _ = subs.Put(ctx, "indexer", subscription.Config{Kind: subscription.PullWake, Pattern: "answers/*", WakeStream: "wakes"})

	_, _, _ = streams.Create(ctx, "answers/1", stream.Config{ContentType: "text/plain"}, []byte("hello"))
	_, _ = subs.Grown(ctx, "answers/1")

	claim, _ := subs.Claim(ctx, "indexer", "worker 7")
	for _, l := range claim.Links {
		fmt.Println(l.Path, l.Acked, l.Tail, l.Pending)
	}
	more, _, _ := subs.Answer(ctx, "indexer", claim.Generation, subscription.Answer{
		Wake: claim.Wake, Generation: claim.Generation, Done: true,
		Acks: []subscription.Ack{{Path: "answers/1", Offset: claim.Links[0].Tail}},
	})
	fmt.Println("more:", more)
	// Output:
	// answers/1 -1 0000000000000001_0000000000000005 true
	// more: false
}
