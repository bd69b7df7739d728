// Command diary keeps a conversation: each call adds a turn, and all of them are
// printed. It is the smallest starting point for an agent's memory.
//
//	diary -store /tmp/diary "what did I do today?"
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/transcript"
)

func main() {
	store := flag.String("store", "diary-store", "directory of the store")
	flag.Parse()
	if err := run(context.Background(), os.Stdout, *store, strings.Join(flag.Args(), " ")); err != nil {
		fmt.Fprintln(os.Stderr, "diary:", err)
		os.Exit(1)
	}
}

// run adds a turn, if there is something to say, and prints the conversation.
func run(ctx context.Context, out io.Writer, dir, said string) (err error) {
	db, err := stet.Open(ctx, dir, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if said != "" {
		if err := add(ctx, db, said); err != nil {
			return err
		}
	}
	talk, err := transcript.New(db.Conversations(), db.Blobs()).Conversation(ctx, "diary")
	if err != nil {
		return err
	}
	for message, err := range talk.Messages(ctx, nil) {
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s: %s\n", message.Role, message.Text)
	}
	return nil
}

// add appends a turn and its answer. Both are durable when it returns.
func add(ctx context.Context, db *stet.DB, said string) error {
	c, err := db.Conversations().Open(ctx, "diary")
	if errors.Is(err, conversation.ErrNotFound) {
		c, err = db.Conversations().Create(ctx, conversation.Info{ID: "diary", Title: "a diary"})
	}
	if err != nil {
		return err
	}
	turn, err := conversation.NewTurn(&agentv1.UserMessage{Text: said})
	if err != nil {
		return err
	}
	if err := c.AppendTurn(ctx, turn); err != nil {
		return err
	}
	answer := &agentv1.AssistantMessage{Text: "noted: " + said} // ask your model here
	err = c.AppendStep(ctx, &agentv1.ConversationStep{Message: &agentv1.ConversationStep_AssistantMessage{AssistantMessage: answer}})
	if err != nil {
		return err
	}
	_, err = c.Save(ctx, nil)
	return err
}
