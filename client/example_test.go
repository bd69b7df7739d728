package client_test

import (
	"context"
	"fmt"
	"os"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/client"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/server"
)

// A store on the other side of the wire is used like one that is here, and what
// an agent does is followed.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "stet-")
	check(err)
	defer os.RemoveAll(dir)
	local, err := stet.Open(ctx, dir, nil)
	check(err)
	defer local.Close()
	handler, err := server.New(local, &server.Options{Token: token})
	check(err)
	srv := serve(handler)
	defer srv.Close()

	c, err := client.New(srv.URL, &client.Options{Token: token})
	check(err)
	defer c.Close()
	db := stet.NewRemote(c.Blobs(), c.Rows(), nil, nil)

	conv, err := db.Conversations().Create(ctx, conversation.Info{Title: "add retry"})
	check(err)
	turn, err := conversation.NewTurn(&agentv1.UserMessage{Text: "add retry to checkout"})
	check(err)
	check(conv.AppendTurn(ctx, turn))
	saved, err := conv.Save(ctx, nil)
	check(err)
	root, err := c.Blobs().Has(ctx, saved.Root, blob.Sum([]byte("never stored")))
	check(err)
	fmt.Println("turns:", saved.Turns, "stored:", root)

	_, err = c.Agents().Create(ctx, "a1", "add retry", conv.ID())
	check(err)
	_, err = c.Agents().Append(ctx, "a1", "first", &agentv1.InteractionUpdate{
		Message: &agentv1.InteractionUpdate_TextDelta{TextDelta: &agentv1.TextDeltaUpdate{Text: "Looking at checkout"}},
	})
	check(err)
	check(c.Agents().Archive(ctx, "a1"))
	for event, err := range c.Agents().Follow(ctx, "a1", nil) {
		check(err)
		if event.Update != nil {
			fmt.Println(event.Update.GetTextDelta().GetText())
		}
	}
	// Output:
	// turns: 1 stored: [true false]
	// Looking at checkout
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
