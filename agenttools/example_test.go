package agenttools_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/agenttools"
	"github.com/stet-dev/stet/checkpoint"
)

// An agent calls a tool of a server in the same process.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "shop-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	work := filepath.Join(dir, "work")
	if err := os.Mkdir(work, 0o700); err != nil {
		panic(err)
	}
	open := func(ctx context.Context, _ bool, use func(*agenttools.Place) error) error {
		db, err := stet.Open(ctx, filepath.Join(dir, "store"), nil)
		if err != nil {
			return err
		}
		space, err := db.Checkpoints().Open(ctx, work)
		if err != nil {
			return errors.Join(err, db.Close())
		}
		return errors.Join(use(&agenttools.Place{DB: db, Checkpoints: db.Checkpoints(), Space: space}), space.Close(), db.Close())
	}

	// A turn of the agent begins, and it writes a file.
	err = open(ctx, true, func(p *agenttools.Place) error {
		_, err := p.Space.Checkpoint(ctx, checkpoint.Request{Conversation: "session-1", Turn: 1, Side: checkpoint.Before})
		return err
	})
	if err != nil {
		panic(err)
	}
	if err := os.WriteFile(filepath.Join(work, "main.go"), []byte("package main\n"), 0o600); err != nil {
		panic(err)
	}

	server := agenttools.New(open, &agenttools.Options{Session: "session-1"}).Server()
	ours, theirs := mcp.NewInMemoryTransports()
	if _, err := server.Connect(ctx, ours, nil); err != nil {
		panic(err)
	}
	agent, err := mcp.NewClient(&mcp.Implementation{Name: "agent"}, nil).Connect(ctx, theirs, nil)
	if err != nil {
		panic(err)
	}
	defer agent.Close()
	answer, err := agent.CallTool(ctx, &mcp.CallToolParams{Name: "diff", Arguments: map[string]any{"from": "c1", "stat": true}})
	if err != nil {
		panic(err)
	}
	fmt.Print(answer.Content[0].(*mcp.TextContent).Text)
	// Output:
	// From `c1` to the workspace now: 1 file changed
	// - add `main.go` +1 -0
}
