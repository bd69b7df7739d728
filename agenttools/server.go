package agenttools

import (
	"context"
	"errors"
	"io"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// instructions tell the agent what the server is for.
const instructions = `stet records every turn of this session and lets you take back your own changes to files.
Use history to see turns and checkpoints, diff and show to look closer, search to find what was said or done in any earlier session.
To take something back: rewind_preview shows the plan and a token, rewind carries out exactly that plan, undo reverts it.
By default a rewind takes back only what this session changed; files of the user and of other sessions stay.`

// Server returns a server of the Model Context Protocol that has the tools.
func (t *Tools) Server() *mcp.Server {
	s := mcp.NewServer(
		&mcp.Implementation{Name: "stet", Title: "stet", Version: t.opts.Version},
		&mcp.ServerOptions{Instructions: instructions, Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}}},
	)
	add(s, t.History, "history", reads, "What happened in this workspace: turns and checkpoints with their prompts, tools and changed files, newest first, of all agents, and how the files differ now.")
	add(s, t.Search, "search", reads, "Find words in all recorded conversations of all agents and directories: prompts, answers, tool input and output.")
	add(s, t.Show, "show", reads, "Show a checkpoint with its changed files, or a conversation turn by turn.")
	add(s, t.Diff, "diff", reads, "Show what changed between two checkpoints, or between a checkpoint and now, as a unified diff.")
	add(s, t.Checkpoint, "checkpoint", adds, "Save the workspace as it is now, so that you can come back to it. Worth doing before a risky change.")
	add(s, t.RewindPreview, "rewind_preview", reads, "Show what a rewind would do, file by file, and the token to carry it out. Changes nothing. By default it is about this session's own changes only, back to the beginning of the current turn.")
	add(s, t.Rewind, "rewind", changes, "Take back changes of files: carry out exactly the plan that rewind_preview showed, all or nothing. Refuses if anything changed since. The state before is saved; undo reverts it.")
	add(s, t.Undo, "undo", changes, "Undo the last rewind of this session: the files are as before it.")
	return s
}

// effect is what a tool does to files and store.
type effect int

const (
	reads   effect = iota // changes nothing
	adds                  // adds to the store
	changes               // changes files
)

// add adds a tool. Its errors are answers: the agent reads them and can correct
// itself.
func add[Args any](s *mcp.Server, run func(context.Context, Args) (string, error), name string, does effect, about string) {
	destructive, open := does == changes, false
	tool := &mcp.Tool{
		Name: name, Description: about,
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: does == reads, DestructiveHint: &destructive, OpenWorldHint: &open},
	}
	mcp.AddTool(s, tool, func(ctx context.Context, _ *mcp.CallToolRequest, args Args) (*mcp.CallToolResult, any, error) {
		text, err := run(ctx, args)
		if err != nil {
			return nil, nil, err
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
	})
}

// Serve answers the messages on in, one in each line, on out. It returns nil when in
// ends, after the running calls have ended. If ctx ends, running calls are cancelled.
func (t *Tools) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	s := t.Server()
	// The library lets calls continue when the context of the server ends.
	s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(call context.Context, method string, req mcp.Request) (mcp.Result, error) {
			call, cancel := context.WithCancel(call)
			defer cancel()
			defer context.AfterFunc(ctx, cancel)()
			return next(call, method, req)
		}
	})
	err := s.Run(ctx, &lineTransport{in: in, out: out, log: t.log})
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
