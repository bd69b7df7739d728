package usage_test

import (
	"context"
	"fmt"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/cloudagent"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/kv/memkv"
	"github.com/stet-dev/stet/usage"
)

// One conversation is saved, and a blob is stored that nothing refers to.
func Example() {
	ctx := context.Background()
	mem := memblob.New()
	blobs, rows := blob.Checked(mem), memkv.New(mem)
	store := &usage.Store{
		Blobs: blobs, Lister: mem, Conversations: conversation.New(blobs, rows, nil),
		Checkpoints: checkpoint.New(blobs, rows, nil), Agents: cloudagent.New(blobs, rows, nil),
	}
	c, err := store.Conversations.Create(ctx, conversation.Info{ID: "shop", Title: "add retry"})
	if err != nil {
		panic(err)
	}
	turn, err := conversation.NewTurn(&agentv1.UserMessage{Text: "add retry"})
	if err != nil {
		panic(err)
	}
	if err := c.AppendTurn(ctx, turn); err != nil {
		panic(err)
	}
	if _, err := c.Save(ctx, nil); err != nil {
		panic(err)
	}
	if err := blobs.Put(ctx, blob.New([]byte("left behind"))); err != nil {
		panic(err)
	}

	report, err := store.Measure(ctx, &usage.Options{History: true})
	if err != nil {
		panic(err)
	}
	for _, k := range report.Kinds {
		fmt.Println(k.Name, k.Blobs)
	}
	fmt.Println("without a reference", report.Unreferenced.Bytes)
	fmt.Println(report.Conversations[0].Title, report.Conversations[0].Bytes == report.Referenced().Bytes)
	// Output:
	// turns 1
	// states 1
	// messages 1
	// without a reference 11
	// add retry true
}
