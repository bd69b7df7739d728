package upkeep_test

import (
	"context"
	"fmt"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/kv/memkv"
	"github.com/stet-dev/stet/upkeep"
)

func Example() {
	ctx := context.Background()
	driver := memblob.New()
	blobs, rows := blob.Checked(driver), memkv.New(driver)
	conversations := conversation.New(blobs, rows, nil)
	for _, id := range []string{"keep", "drop"} {
		c, err := conversations.Create(ctx, conversation.Info{ID: id})
		if err != nil {
			panic(err)
		}
		turn, err := conversation.NewTurn(&agentv1.UserMessage{Text: id})
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
	if err := conversations.Delete(ctx, "drop", nil); err != nil {
		panic(err)
	}

	keeper := upkeep.New(upkeep.Stores{Blobs: blobs, Rows: rows, Inventory: driver})
	report, err := keeper.Check(ctx, &upkeep.CheckOptions{ReadData: true})
	if err != nil {
		panic(err)
	}
	fmt.Printf("damage: %d, unreferenced blobs: %d\n", len(report.Damage), report.Orphans)

	result, err := keeper.Collect(ctx, &upkeep.CollectOptions{Grace: -1})
	if err != nil {
		panic(err)
	}
	fmt.Printf("removed: %d, kept: %d\n", result.Removed, result.Kept)
	// Output:
	// damage: 0, unreferenced blobs: 3
	// removed: 3, kept: 3
}
