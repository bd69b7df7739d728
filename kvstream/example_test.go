package kvstream_test

import (
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/kvstream"
)

// channel is a stream within one process.
type channel[T any] chan *T

func (c channel[T]) Send(msg *T) error { c <- msg; return nil }

func (c channel[T]) Receive() (*T, error) {
	if msg, ok := <-c; ok {
		return msg, nil
	}
	return nil, io.EOF
}

func Example() {
	ctx := context.Background()
	requests, answers := make(channel[agentv1.KvServerMessage]), make(channel[agentv1.KvClientMessage])
	var sides sync.WaitGroup

	// The client keeps the blobs.
	local := memblob.New()
	sides.Go(func() {
		fmt.Println("served:", kvstream.Serve(ctx, requests, answers, local, nil))
		close(answers)
	})

	// The server uses them.
	remote := kvstream.New(requests, nil)
	sides.Go(func() {
		if err := remote.Run(answers); err != nil {
			fmt.Println(err)
		}
	})
	b := blob.New([]byte("a step of a conversation"))
	fmt.Println("put:", remote.Put(ctx, b))
	data, err := remote.Get(ctx, b.ID)
	fmt.Printf("get: %s %v\n", data, err)
	fmt.Println("the client has", local.Len(), "blob")

	close(requests)
	sides.Wait()
	// Output:
	// put: <nil>
	// get: a step of a conversation <nil>
	// the client has 1 blob
	// served: <nil>
}
