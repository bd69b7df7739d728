package document_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/document"
	"github.com/stet-dev/stet/kv/memkv"
)

// A program appends to a session: the entry and the count change together.
func Example() {
	ctx := context.Background()
	blobs := memblob.New()
	store := document.Open(blobs, memkv.New(blobs), nil)

	appended := func(entry, content string, count document.Expectation) error {
		_, err := store.Commit(ctx, "sessions", document.Batch{Changes: []document.Change{
			{Name: "s1/count", Set: &document.New{Data: []byte(entry)}, Expect: count},
			{Name: "s1/entry/" + entry, Set: &document.New{Data: []byte(content)}, Expect: document.Absent},
		}})
		return err
	}
	if err := appended("1", "hello", document.Absent); err != nil {
		log.Fatal(err)
	}
	head, err := store.Get(ctx, "sessions", "s1/count")
	if err != nil {
		log.Fatal(err)
	}
	if err := appended("2", "hi", document.At(head[0].Version)); err != nil {
		log.Fatal(err)
	}
	err = appended("2", "another hi", document.At(head[0].Version))
	fmt.Println("another writer was faster:", errors.Is(err, document.ErrConflict))

	for doc, err := range store.List(ctx, document.Query{Collection: "sessions", Prefix: "s1/entry/"}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(doc.Name, string(doc.Data))
	}
	// Output:
	// another writer was faster: true
	// s1/entry/1 hello
	// s1/entry/2 hi
}
