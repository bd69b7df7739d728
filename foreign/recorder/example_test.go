package recorder_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/recorder"
	"github.com/stet-dev/stet/kv/memkv"
)

// The events of a turn become a checkpoint before it and one after it.
func ExampleRecorder_Record() {
	dir, err := os.MkdirTemp("", "recorder")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	blobs := memblob.New()
	rows := memkv.New(blobs)
	service := checkpoint.New(blobs, rows, &checkpoint.Options{IndexDir: filepath.Join(dir, "index")})
	r := &recorder.Recorder{
		Adapter: silent{}, Blobs: blobs, Rows: rows, Spool: filepath.Join(dir, "spool"),
		Space: func(ctx context.Context, dir string) (*checkpoint.Workspace, error) { return service.Open(ctx, dir) },
	}
	workspace := filepath.Join(dir, "workspace")
	if err := os.Mkdir(workspace, 0o755); err != nil {
		panic(err)
	}
	for _, e := range []foreign.Event{{Kind: foreign.TurnStart, Prompt: "write a file"}, {Kind: foreign.TurnEnd}} {
		e.Session, e.Workspace = "a-session", workspace
		if e.Kind == foreign.TurnEnd {
			if err := os.WriteFile(filepath.Join(workspace, "main.go"), []byte("package main\n"), 0o644); err != nil {
				panic(err)
			}
		}
		out, err := r.Record(context.Background(), e)
		if err != nil {
			panic(err)
		}
		fmt.Println(out.Checkpoint.Side, out.Checkpoint.Turn)
	}
	// Output:
	// SIDE_BEFORE 1
	// SIDE_AFTER 1
}
