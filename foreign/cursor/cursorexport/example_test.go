package cursorexport_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/foreign/cursor"
	"github.com/stet-dev/stet/foreign/cursor/cursorexport"
	"github.com/stet-dev/stet/foreign/cursor/cursorimport"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/kv/memkv"
)

// Write a conversation into a new database of the editor, and read it there.
func Example() {
	ctx := context.Background()
	mem := memblob.New()
	src := cursorimport.Target{Blobs: blob.Checked(mem), Rows: memkv.New(mem)}
	c, err := conversation.New(src.Blobs, src.Rows, nil).Create(ctx, conversation.Info{ID: "talk", Title: "add retry"})
	if err != nil {
		log.Fatal(err)
	}
	turn, err := conversation.NewTurn(&agentv1.UserMessage{Text: "add retry to checkout", MessageId: "m1"})
	if err != nil {
		log.Fatal(err)
	}
	if err := c.AppendTurn(ctx, turn); err != nil {
		log.Fatal(err)
	}
	if _, err := c.Save(ctx, nil); err != nil {
		log.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "copy.vscdb")
	r, err := cursorexport.Export(ctx, src, path, []string{"talk"}, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(r.Conversations, "conversation,", r.Messages, "message")
	there, err := cursor.Open(ctx, path, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer there.Close()
	conv, err := there.Conversation(ctx, "talk")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(conv.Title)
	// Output:
	// 1 conversation, 1 message
	// add retry
}
