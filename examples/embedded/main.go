// Command embedded is the quick start of docs/embed/GO.md: a conversation in a directory.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
)

func main() {
	if err := run(context.Background(), os.Stdout, "myagent-store"); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer, dir string) (err error) {
	db, err := stet.Open(ctx, dir, nil) // created when it is not there
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	c, err := db.Conversations().Create(ctx, conversation.Info{Title: "add retry"})
	if err != nil {
		return err
	}
	turn, err := conversation.NewTurn(&agentv1.UserMessage{Text: "add retry to checkout"})
	if err != nil {
		return err
	}
	if err := c.AppendTurn(ctx, turn); err != nil {
		return err
	}
	saved, err := c.Save(ctx, nil) // blobs, pointer and history in one commit, one fsync
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "saved turn", saved.Turns)
	return nil
}
