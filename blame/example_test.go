package blame_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/stet-dev/stet/blame"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/kv/memkv"
)

func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "shop-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	blobs := memblob.New()
	rows := memkv.New(blobs)
	checkpoints := checkpoint.New(blobs, rows, nil)
	w, err := checkpoints.Open(ctx, dir)
	if err != nil {
		panic(err)
	}
	defer w.Close()

	// The user writes a line, and an agent adds another one in its first turn.
	save := func(side checkpoint.Side, text string) *checkpoint.Record {
		if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(text), 0o600); err != nil {
			panic(err)
		}
		res, err := w.Checkpoint(ctx, checkpoint.Request{Conversation: "add-retry", Turn: 1, Side: side})
		if err != nil {
			panic(err)
		}
		return res.Record
	}
	save(checkpoint.Before, "call()\n")
	rec := save(checkpoint.After, "call()\nretry()\n")

	reader := blame.New(blobs, checkpoints, conversation.New(blobs, rows, nil))
	file, err := reader.File(ctx, rec, "main.go")
	if err != nil {
		panic(err)
	}
	for _, line := range file.Lines {
		by := file.Origins[line.Origin]
		fmt.Print(line.Number, " ", by.Kind, " ", by.Writer.Turn, " ", line.Text)
	}
	// Output:
	// 1 you 0 call()
	// 2 agent 1 retry()
}
