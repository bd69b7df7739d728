package transfer_test

import (
	"context"
	"fmt"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/kv/memkv"
	"github.com/stet-dev/stet/transfer"
)

// A conversation is copied to another store, and again after it went on.
func Example() {
	ctx := context.Background()
	memory := func() transfer.Side {
		blobs := memblob.New()
		return transfer.Side{Blobs: blob.Checked(blobs), Rows: memkv.New(blobs)}
	}
	here, there := memory(), memory()
	talk, err := conversation.New(here.Blobs, here.Rows, nil).Create(ctx, conversation.Info{ID: "talk"})
	if err != nil {
		panic(err)
	}
	for _, text := range []string{"add retry", "also cover the time-out"} {
		turn, err := conversation.NewTurn(&agentv1.UserMessage{Text: text})
		if err != nil {
			panic(err)
		}
		if err := talk.AppendTurn(ctx, turn); err != nil {
			panic(err)
		}
		if _, err := talk.Save(ctx, nil); err != nil {
			panic(err)
		}
		report, err := transfer.Run(ctx, here, there, nil, nil)
		if err != nil {
			panic(err)
		}
		c := report.Conversations[0]
		fmt.Println(c.ID, c.Status, "saves:", c.Saves, "blobs:", report.Blobs)
	}
	// Output:
	// talk created saves: 1 blobs: 3
	// talk updated saves: 1 blobs: 3
}
