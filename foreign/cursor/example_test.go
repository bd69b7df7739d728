package cursor_test

import (
	"context"
	"fmt"
	"log"

	"github.com/stet-dev/stet/foreign/cursor"
)

// List the conversations of an editor's store with their messages.
func Example() {
	ctx := context.Background()
	store, err := cursor.Open(ctx, "testdata/state.vscdb", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	for conv, err := range store.All(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s: root %s\n", conv.Title, conv.State.ID.Short())
		for msg, err := range store.Messages(ctx, conv) {
			if err != nil {
				log.Fatal(err)
			}
			fmt.Printf("  %s %q\n", msg.Role, msg.Text)
		}
	}
	// Output:
	// legacy hex state: root 9d82aff3c9b4
	// fixture: root 9d82aff3c9b4
	//   user "add a line"
	//   assistant ""
	//   assistant "done"
	//   assistant "orphan bubble"
}

// Find damage and waste in a store.
func ExampleStore_Verify() {
	ctx := context.Background()
	store, err := cursor.Open(ctx, "testdata/state.vscdb", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	report, err := store.Verify(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(report.OK(), report.Blobs, "blobs,", report.OrphanCount, "orphan")
	// Output: true 25 blobs, 1 orphan
}
