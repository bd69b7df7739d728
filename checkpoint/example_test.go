package checkpoint_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/kv/memkv"
)

func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "shop-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			fmt.Println(err)
		}
	}
	write("main.go", "package main\n")
	write("README", "a shop\n")

	blobs := memblob.New()
	service := checkpoint.New(blobs, memkv.New(blobs), nil)
	w, err := service.Open(ctx, dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	turn := checkpoint.Request{Conversation: "add-retry", Turn: 1, Side: checkpoint.Before}
	before, err := w.Checkpoint(ctx, turn)
	if err != nil {
		fmt.Println(err)
		return
	}
	// The agent works …
	write("main.go", "package main\n\nfunc main() {}\n")
	write("retry.go", "package main\n")
	turn.Side = checkpoint.After
	if _, err := w.Checkpoint(ctx, turn); err != nil {
		fmt.Println(err)
		return
	}
	// … and so does the user.
	write("README", "a shop with coffee\n")

	plan, err := w.Plan(ctx, checkpoint.RewindRequest{To: before.Record.ID})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, a := range plan.Actions {
		fmt.Printf("%s %s +%d -%d\n", a.Kind, a.Path, a.Add, a.Del)
	}
	done, err := w.Rewind(ctx, plan.Request(), plan.Token)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("saved the present as %s, %d files changed\n", done.Saved.Name(), done.Files)
	if _, err := w.Undo(ctx, nil); err != nil {
		fmt.Println(err)
		return
	}
	text, err := os.ReadFile(filepath.Join(dir, "main.go"))
	fmt.Printf("after undo: %q %v\n", text, err)
	// Output:
	// keep README +0 -0
	// restore main.go +0 -2
	// delete retry.go +0 -1
	// saved the present as c3, 2 files changed
	// after undo: "package main\n\nfunc main() {}\n" <nil>
}
