package search_test

import (
	"context"
	"fmt"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/kv/memkv"
	"github.com/stet-dev/stet/search"
)

func Example() {
	ctx := context.Background()
	mem := memblob.New()
	blobs, rows := blob.Checked(mem), memkv.New(mem)
	store := conversation.New(blobs, rows, nil)

	c, _ := store.Create(ctx, conversation.Info{ID: "shop"})
	turn, _ := conversation.NewTurn(&agentv1.UserMessage{Text: "add retry to the checkout"})
	_ = c.AppendTurn(ctx, turn)
	if _, err := c.Save(ctx, nil); err != nil {
		fmt.Println(err)
		return
	}

	index, err := search.Open(ctx, store, blobs, rows, nil) // in memory
	if err != nil {
		fmt.Println(err)
		return
	}
	defer index.Close()
	if _, err := index.Update(ctx); err != nil {
		fmt.Println(err)
		return
	}
	page, err := index.Search(ctx, `"add retry" check`, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, hit := range page.Hits {
		fmt.Printf("%s, turn %d: %s\n", hit.Conversation, hit.Turn, hit.Snippet.Text)
	}
	// Output:
	// shop, turn 1: add retry to the checkout
}
