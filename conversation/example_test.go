package conversation_test

import (
	"context"
	"fmt"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/kv/memkv"
)

func Example() {
	ctx := context.Background()
	mem := memblob.New()
	store := conversation.New(blob.Checked(mem), memkv.New(mem), nil)

	c, err := store.Create(ctx, conversation.Info{ID: "shop", Title: "add retry to checkout"})
	if err != nil {
		panic(err)
	}
	for _, text := range []string{"add retry", "run the tests"} {
		turn, err := conversation.NewTurn(&agentv1.UserMessage{Text: text})
		if err != nil {
			panic(err)
		}
		if err := c.AppendTurn(ctx, turn); err != nil {
			panic(err)
		}
		if _, err := c.Save(ctx, nil); err != nil {
			panic(err)
		}
	}
	back, err := c.Rewind(ctx, 1, nil)
	if err != nil {
		panic(err)
	}
	fmt.Printf("save %d continues save %d with %d turn\n", back.Seq, back.Parent, back.Turns)

	branches, err := store.Branches(ctx, "shop")
	if err != nil {
		panic(err)
	}
	for _, b := range branches {
		fmt.Printf("branch %q ends at save %d, current %v\n", b.Label, b.Tip.Seq, b.Current)
	}
	// Output:
	// save 3 continues save 1 with 1 turn
	// branch "" ends at save 2, current false
	// branch "after-1" ends at save 3, current true
}
