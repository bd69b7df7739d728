package timeline_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/kv/memkv"
	"github.com/stet-dev/stet/timeline"
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

	// An agent works for three turns, and the third one is taken back.
	for turn := range uint64(3) {
		if err := os.WriteFile(filepath.Join(dir, "main.go"), fmt.Appendf(nil, "// turn %d\n", turn+1), 0o600); err != nil {
			panic(err)
		}
		req := checkpoint.Request{Conversation: "add-retry", Turn: turn + 1, Side: checkpoint.After, Touched: []string{"main.go"}}
		if _, err := w.Checkpoint(ctx, req); err != nil {
			panic(err)
		}
	}
	plan, err := w.Plan(ctx, checkpoint.RewindRequest{To: "c2"})
	if err != nil {
		panic(err)
	}
	if _, err := w.Rewind(ctx, plan.Request(), plan.Token); err != nil {
		panic(err)
	}

	reader := timeline.New(checkpoints, conversation.New(blobs, rows, nil))
	history, err := reader.Read(ctx, timeline.Scope{Conversation: "add-retry"})
	if err != nil {
		panic(err)
	}
	for _, e := range history.Shown() {
		fmt.Printf("%s turn %d, left behind: %v, current: %v\n", e.Record.Name(), e.Record.Turn, e.Left, e.Current)
	}
	// Output:
	// c3 turn 3, left behind: true, current: false
	// c2 turn 2, left behind: false, current: true
	// c1 turn 1, left behind: false, current: false
}
