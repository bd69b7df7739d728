package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/internal/testenv"
)

func toolStep(call *agentv1.ToolCall) *agentv1.ConversationStep {
	return &agentv1.ConversationStep{Message: &agentv1.ConversationStep_ToolCall{ToolCall: call}}
}

// wholeStep is an edit that names the file before and after.
func wholeStep(path string, before *string, after string) *agentv1.ConversationStep {
	return toolStep(&agentv1.ToolCall{Tool: &agentv1.ToolCall_EditToolCall{EditToolCall: &agentv1.EditToolCall{
		Result: &agentv1.EditResult{Result: &agentv1.EditResult_Success{
			Success: &agentv1.EditSuccess{Path: path, BeforeFullFileContent: before, AfterFullFileContent: after},
		}},
	}}})
}

// namedStep is a call of a tool of another agent.
func namedStep(tool string, args map[string]string) *agentv1.ConversationStep {
	fields := make(map[string]*structpb.Value)
	for name, value := range args {
		fields[name] = structpb.NewStringValue(value)
	}
	return toolStep(&agentv1.ToolCall{Tool: &agentv1.ToolCall_McpToolCall{McpToolCall: &agentv1.McpToolCall{
		Args:   &agentv1.McpArgs{Name: tool, ToolName: tool, Args: fields},
		Result: &agentv1.McpToolResult{Result: &agentv1.McpToolResult_Success{Success: &agentv1.McpSuccess{}}},
	}}})
}

// turnWith stores a workspace with one turn that made the given calls.
func turnWith(t *testing.T, store, dir string, work func(), steps ...*agentv1.ConversationStep) {
	t.Helper()
	ctx := t.Context()
	db, err := stet.Open(ctx, store, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	space, err := db.Checkpoints().Open(ctx, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer space.Close()
	conv, err := db.Conversations().Create(ctx, conversation.Info{ID: "talk-1", Title: "a talk", Workspace: space.Path()})
	if err != nil {
		t.Fatal(err)
	}
	take := func(side checkpoint.Side, save *conversation.Save) {
		req := checkpoint.Request{Conversation: conv.ID(), Turn: 1, Side: side}
		if save != nil {
			req.Root = save.Root
		}
		if _, err := space.Checkpoint(ctx, req); err != nil {
			t.Fatal(err)
		}
	}
	take(checkpoint.Before, nil)
	work()
	turn, err := conversation.NewTurn(&agentv1.UserMessage{Text: "make it better", MessageId: "m1"}, steps...)
	if err != nil {
		t.Fatal(err)
	}
	if err := conv.AppendTurn(ctx, turn); err != nil {
		t.Fatal(err)
	}
	save, err := conv.Save(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	take(checkpoint.After, &save)
}

func bisected(t *testing.T, store, dir string, command ...string) bisectJSON {
	t.Helper()
	var out, errs bytes.Buffer
	args := append([]string{"--store", store, "-C", dir, "bisect", "--json", "--"}, command...)
	if code := Main(args, strings.NewReader(""), &out, &errs); code != 0 {
		t.Fatalf("exit code %d: %s", code, &errs)
	}
	var found bisectJSON
	if err := json.Unmarshal(out.Bytes(), &found); err != nil {
		t.Fatal(err)
	}
	return found
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Where the edits of a turn are recorded exactly, the one that broke it is found.
func TestBisectFindsTheToolCall(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	store, dir := filepath.Join(t.TempDir(), "store"), t.TempDir()
	lib, more := filepath.Join(dir, "lib.txt"), filepath.Join(dir, "more.txt")
	write(t, lib, "works\nend\n")
	before := "works\nend\n"
	turnWith(t, store, dir, func() {
		write(t, lib, "broken\nend\nmore\n")
		write(t, more, "new\n")
		write(t, filepath.Join(dir, "made by a command"), "x\n")
	},
		namedStep("Write", map[string]string{"file_path": more, "content": "new\n"}),
		wholeStep("lib.txt", &before, "works\nend\nmore\n"),
		namedStep("Bash", map[string]string{"command": "touch"}),
		namedStep("Edit", map[string]string{"file_path": lib, "old_string": "works", "new_string": "broken"}),
	)
	found := bisected(t, store, dir, "grep", "-q", "works", "lib.txt")
	if found.Edit == nil || found.Edit.Path != "lib.txt" || found.Edit.Call != 4 || found.Edit.Turn != 1 {
		t.Fatalf("found %+v, edit %+v", found, found.Edit)
	}
	if len(found.Files) != 1 || !strings.Contains(found.Files[0].Diff, "-works\n+broken\n") || strings.Contains(found.Files[0].Diff, "+more") {
		t.Errorf("files %+v, want the one edit", found.Files)
	}
	if found.Prompt != "make it better" {
		t.Errorf("prompt %q", found.Prompt)
	}
	// What a command made is found in the turn, and in no edit.
	found = bisected(t, store, dir, "test", "!", "-e", "made by a command")
	if found.Edit != nil || found.FirstBad.Turn != 1 {
		t.Errorf("found %+v, edit %+v", found, found.Edit)
	}
}

// Edits that do not fit the files say nothing about steps.
func TestBisectWithoutExactEdits(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	store, dir := filepath.Join(t.TempDir(), "store"), t.TempDir()
	write(t, filepath.Join(dir, "lib.txt"), "works\n")
	other := "something else\n"
	turnWith(t, store, dir, func() { write(t, filepath.Join(dir, "lib.txt"), "broken\n") }, wholeStep("lib.txt", &other, "broken already\n"))
	if found := bisected(t, store, dir, "grep", "-q", "works", "lib.txt"); found.Edit != nil || found.FirstBad.Turn != 1 {
		t.Errorf("found %+v, edit %+v", found, found.Edit)
	}
}

// An interrupt ends the commands and leaves no copies.
func TestBisectInterrupted(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	store, dir := filepath.Join(t.TempDir(), "store"), t.TempDir()
	write(t, filepath.Join(dir, "lib.txt"), "works\n")
	turnWith(t, store, dir, func() { write(t, filepath.Join(dir, "lib.txt"), "broken\n") })
	ready := filepath.Join(t.TempDir(), "ready")
	testenv.Mkfifo(t, ready, 0o600)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		if f, err := os.Open(ready); err == nil { // until a command writes to it
			f.Close()
		}
		cancel()
	}()
	var out, errs bytes.Buffer
	a := &app{in: strings.NewReader(""), out: &out, err: &errs}
	root := a.root()
	root.SetArgs([]string{"--store", store, "-C", dir, "bisect", "--jobs", "1", "--", "sh", "-c", "echo > " + ready + "; sleep 1000"})
	if err := root.ExecuteContext(ctx); !isCancelled(err) {
		t.Errorf("interrupted: %v", err)
	}
	left, err := os.ReadDir(filepath.Join(cache, "stet", "rooms"))
	if err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
