package purge_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/purge"
)

func Example() {
	if err := forgetKey(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// found in 1 conversation
	// 0 occurrences left
}

// forgetKey says a key in a conversation and removes it.
func forgetKey(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "stet-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	db, err := stet.Open(ctx, filepath.Join(dir, "store"), nil)
	if err != nil {
		return err
	}
	defer db.Close()
	talk, err := db.Conversations().Create(ctx, conversation.Info{Title: "deploy"})
	if err != nil {
		return err
	}
	turn, err := conversation.NewTurn(&agentv1.UserMessage{Text: "the key is sk-live-0123456789"})
	if err != nil {
		return err
	}
	if err := talk.AppendTurn(ctx, turn); err != nil {
		return err
	}
	if _, err := talk.Save(ctx, nil); err != nil {
		return err
	}

	p, err := db.Purger()
	if err != nil {
		return err
	}
	plan, err := p.Find(ctx, purge.Target{Secrets: [][]byte{[]byte("sk-live-0123456789")}})
	if err != nil {
		return err
	}
	fmt.Printf("found in %d conversation\n", len(plan.Conversations))
	result, err := p.Remove(ctx, plan)
	if err != nil {
		return err
	}
	fmt.Printf("%d occurrences left\n", result.Left())
	return nil
}
