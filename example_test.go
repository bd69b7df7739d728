package stet_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
)

func Example() {
	if err := work(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// saved turn 1 of "add retry to checkout"
	// the rewind changed 2 files
	// main.go holds "package main\n"
	// shop: add retry to checkout, 1 turn
}

// work saves a conversation, lets an agent change a project, and takes that back.
func work(ctx context.Context) error {
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

	// A conversation with one turn.
	talk, err := db.Conversations().Create(ctx, conversation.Info{ID: "shop", Title: "add retry to checkout"})
	if err != nil {
		return err
	}
	turn, err := conversation.NewTurn(&agentv1.UserMessage{Text: "add retry"})
	if err != nil {
		return err
	}
	if err := talk.AppendTurn(ctx, turn); err != nil {
		return err
	}
	saved, err := talk.Save(ctx, nil)
	if err != nil {
		return err
	}
	fmt.Printf("saved turn %d of %q\n", saved.Turns, "add retry to checkout")

	// A checkpoint of the project, before the agent works and after.
	project := filepath.Join(dir, "project")
	if err := os.Mkdir(project, 0o755); err != nil {
		return err
	}
	write := func(name, text string) error { return os.WriteFile(filepath.Join(project, name), []byte(text), 0o644) }
	if err := write("main.go", "package main\n"); err != nil {
		return err
	}
	space, err := db.Checkpoints().Open(ctx, project)
	if err != nil {
		return err
	}
	before, err := space.Checkpoint(ctx, checkpoint.Request{Conversation: "shop", Turn: 1, Side: checkpoint.Before})
	if err != nil {
		return err
	}
	if err := write("main.go", "package main\n\nfunc main() {}\n"); err != nil {
		return err
	}
	if err := write("retry.go", "package main\n"); err != nil {
		return err
	}
	if _, err := space.Checkpoint(ctx, checkpoint.Request{Conversation: "shop", Turn: 1, Side: checkpoint.After}); err != nil {
		return err
	}

	// Take the agent's work back. Undo would bring it again.
	done, err := space.Rewind(ctx, checkpoint.RewindRequest{To: before.Record.ID, Scope: checkpoint.FilesOnly}, "")
	if err != nil {
		return err
	}
	fmt.Printf("the rewind changed %d files\n", done.Files)
	text, err := os.ReadFile(filepath.Join(project, "main.go"))
	if err != nil {
		return err
	}
	fmt.Printf("main.go holds %q\n", text)

	page, err := db.Conversations().List(ctx, nil)
	if err != nil {
		return err
	}
	for _, c := range page.Conversations {
		fmt.Printf("%s: %s, %d turn\n", c.ID, c.Title, c.Turns)
	}
	return nil
}
