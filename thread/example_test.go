package thread_test

import (
	"context"
	"fmt"
	"log"

	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/kv/memkv"
	"github.com/stet-dev/stet/thread"
)

// A graph stores a frame after each round. The second one changes one of two channels.
func Example() {
	ctx := context.Background()
	blobs := memblob.New()
	store := thread.New(blobs, memkv.New(blobs), nil)

	first := thread.NewFrame{
		Key:      thread.Key{Thread: "trip", ID: "0001"},
		Metadata: []byte(`{"source": "input"}`),
		Versions: map[string]string{"messages": "1", "city": "1"},
		Values: map[string]thread.Value{
			"messages": {Type: "json", Data: []byte(`["hello"]`)},
			"city":     {Type: "json", Data: []byte(`"Oslo"`)},
		},
	}
	second := thread.NewFrame{
		Key: thread.Key{Thread: "trip", ID: "0002"}, Parent: "0001",
		Metadata: []byte(`{"source": "loop"}`),
		Versions: map[string]string{"messages": "2", "city": "1"},
		Values:   map[string]thread.Value{"messages": {Type: "json", Data: []byte(`["hello","hi"]`)}},
	}
	for _, frame := range []thread.NewFrame{first, second} {
		if err := store.Put(ctx, frame); err != nil {
			log.Fatal(err)
		}
	}
	latest, err := store.Get(ctx, thread.Key{Thread: "trip"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s %s %s\n", latest.ID, latest.Channels["messages"].Data, latest.Channels["city"].Data)
	// Output: 0002 ["hello","hi"] "Oslo"
}
