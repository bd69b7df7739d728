package server_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"github.com/stet-dev/stet/checkpoint"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/gen/stet/v1/stetv1connect"
)

// bench is a workspace in which an agent changed some files during turn 1 of a
// conversation, with a checkpoint on either side.
type bench struct {
	t             *testing.T
	dir, conv     string
	checkpoints   stetv1connect.CheckpointServiceClient
	conversations stetv1connect.ConversationServiceClient
	before, after *stetv1.Checkpoint
}

// call makes a call that must succeed.
func call[Req, Res any](t *testing.T, f func(context.Context, *Req) (*Res, error), m *Req) *Res {
	t.Helper()
	res, err := f(t.Context(), m)
	if err != nil {
		t.Fatalf("%T: %v", m, err)
	}
	return res
}

// refuse makes a call that must fail with a code, and returns the message.
func refuse[Req, Res any](t *testing.T, f func(context.Context, *Req) (*Res, error), m *Req, code connect.Code) string {
	t.Helper()
	_, err := f(t.Context(), m)
	var wire *connect.Error
	if !errors.As(err, &wire) || wire.Code() != code {
		t.Fatalf("%T: got %v, want %v", m, err, code)
	}
	if bad := mistake(err); bad != "" {
		t.Errorf("%T: %s: %v", m, bad, err)
	}
	return wire.Message()
}

func (b *bench) write(name, content string) {
	b.t.Helper()
	path := filepath.Join(b.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// has compares a file with what it should contain; "" stands for no file.
func (b *bench) has(name, want string) {
	b.t.Helper()
	got, err := os.ReadFile(filepath.Join(b.dir, name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		b.t.Fatal(err)
	}
	if string(got) != want {
		b.t.Errorf("%s has %q, want %q", name, got, want)
	}
}

func (b *bench) turns(texts ...string) {
	b.t.Helper()
	state := &agentv1.ConversationState{}
	for _, s := range texts {
		state.Turns = append(state.Turns, &agentv1.ConversationTurn{Turn: &agentv1.ConversationTurn_AgentConversationTurn{
			AgentConversationTurn: &agentv1.AgentConversationTurn{UserMessage: &agentv1.UserMessage{Text: s, MessageId: s}},
		}})
	}
	call(b.t, b.conversations.Save, &stetv1.SaveConversationRequest{Id: b.conv, State: &stetv1.SaveConversationRequest_Inline{Inline: state}})
}

func newBench(t *testing.T) *bench {
	http, base := dial(t, start(t, nil), token).HTTP()
	return newBenchAt(t, http, base)
}

func newBenchAt(t *testing.T, http connect.HTTPClient, base string) *bench {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{
		t: t, dir: dir, checkpoints: stetv1connect.NewCheckpointServiceClient(http, base),
		conversations: stetv1connect.NewConversationServiceClient(http, base),
	}
	b.conv = call(t, b.conversations.Create, &stetv1.CreateConversationRequest{Title: "shop"}).GetConversation().GetId()
	b.turns("add a price")
	b.write("cart.go", "one\ntwo\nthree\n")
	b.write("notes.txt", "mine\n")
	b.before = b.take(&stetv1.CreateCheckpointRequest{Side: stetv1.Side_SIDE_BEFORE, Turn: 1, MessageId: "m1", Label: "at first"})
	b.write("cart.go", "one\n2 < 3\nthree\n")
	b.write("lib/price.go", "package lib\n")
	b.turns("add a price", "done")
	b.after = b.take(&stetv1.CreateCheckpointRequest{Side: stetv1.Side_SIDE_AFTER, Turn: 1, MessageId: "m1", Author: "agent"})
	return b
}

func (b *bench) take(m *stetv1.CreateCheckpointRequest) *stetv1.Checkpoint {
	b.t.Helper()
	m.Workspace, m.Conversation = b.dir, b.conv
	return call(b.t, b.checkpoints.Create, m).GetCheckpoint()
}

// plan asks for a plan that goes back to the first checkpoint.
func (b *bench) plan(change func(*stetv1.PlanRewindRequest)) (*stetv1.PlanRewindRequest, *stetv1.PlanRewindResponse) {
	b.t.Helper()
	m := &stetv1.PlanRewindRequest{Ref: b.before.GetId(), Workspace: b.dir, Conversation: b.conv}
	if change != nil {
		change(m)
	}
	return m, call(b.t, b.checkpoints.PlanRewind, m)
}

// Lines that were not all counted are not told as if they were.
func TestPartialLineCountsStayAway(t *testing.T) {
	b := newBench(t)
	for i := range 300 {
		b.write(fmt.Sprintf("many/%d", i), "new\n")
	}
	if c := b.take(&stetv1.CreateCheckpointRequest{}); c.GetFilesChanged() != 300 || c.GetLinesAdded() != 0 {
		t.Errorf("%d files, +%d lines; want 300 files and no word about lines", c.GetFilesChanged(), c.GetLinesAdded())
	}
}

func TestCheckpointsOverTheWire(t *testing.T) {
	b := newBench(t)
	a := b.after
	if a.GetParent() != b.before.GetId() || a.GetWorkspace() != b.dir || a.GetKind() != "manual" || a.GetAuthor() != "agent" ||
		a.GetFilesChanged() != 2 || a.GetLinesAdded() != 2 || a.GetLinesRemoved() != 1 || len(a.GetRoot()) != 32 || len(a.GetTree()) != 32 {
		t.Errorf("the second checkpoint: %v", a)
	}
	if bytes.Equal(a.GetRoot(), b.before.GetRoot()) {
		t.Error("both checkpoints name the same state of the conversation")
	}

	for name, m := range map[string]*stetv1.ListCheckpointsRequest{
		"workspace":    {Workspace: b.dir},
		"both":         {Workspace: b.dir, Conversation: b.conv},
		"conversation": {Conversation: b.conv},
		"everything":   {},
	} {
		m.Page = &stetv1.Page{Limit: 1}
		var ids []string
		for range 3 {
			res := call(t, b.checkpoints.List, m)
			for _, c := range res.GetCheckpoints() {
				ids = append(ids, c.GetId())
			}
			if m.Page.Cursor = res.GetNextCursor(); m.Page.Cursor == "" {
				break
			}
		}
		if want := []string{a.GetId(), b.before.GetId()}; !slices.Equal(ids, want) {
			t.Errorf("list by %s: %q, want %q", name, ids, want)
		}
	}
	refuse(t, b.checkpoints.List, &stetv1.ListCheckpointsRequest{Page: &stetv1.Page{Cursor: "?"}}, connect.CodeInvalidArgument)
	other := call(t, b.checkpoints.List, &stetv1.ListCheckpointsRequest{Workspace: b.dir, Conversation: "other"})
	if len(other.GetCheckpoints()) != 0 {
		t.Errorf("checkpoints of another conversation: %v", other)
	}

	// Two ids of the same moment share their beginning: the prefix must be long
	// enough to tell them apart.
	n := 1
	for a.GetId()[:n] == b.before.GetId()[:n] {
		n++
	}
	for ref, want := range map[string]*stetv1.Checkpoint{
		a.GetId()[:n]: a, b.before.GetId(): b.before, "c2": a, "m1": a, "before:m1": b.before, "turn:1": a, "before:turn:1": b.before,
	} {
		got := call(t, b.checkpoints.Get, &stetv1.GetCheckpointRequest{Ref: ref, Workspace: b.dir, Conversation: b.conv}).GetCheckpoint()
		if got.GetId() != want.GetId() || got.GetLabel() != want.GetLabel() {
			t.Errorf("%s: got %v, want %v", ref, got, want)
		}
	}
	// The workspace has an id, too, may be left to the conversation, and is not
	// needed for the id of a checkpoint.
	for _, m := range []*stetv1.GetCheckpointRequest{
		{Ref: "c2", Workspace: checkpoint.WorkspaceID(b.dir)}, {Ref: "c2", Conversation: b.conv}, {Ref: a.GetId()},
	} {
		if got := call(t, b.checkpoints.Get, m).GetCheckpoint().GetId(); got != a.GetId() {
			t.Errorf("%v: got %s, want %s", m, got, a.GetId())
		}
	}
	refuse(t, b.checkpoints.Get, &stetv1.GetCheckpointRequest{Ref: "0", Workspace: b.dir}, connect.CodeInvalidArgument) // ambiguous
	refuse(t, b.checkpoints.Get, &stetv1.GetCheckpointRequest{Ref: "@", Workspace: b.dir}, connect.CodeInvalidArgument)
	refuse(t, b.checkpoints.Get, &stetv1.GetCheckpointRequest{Ref: "c2"}, connect.CodeInvalidArgument)
	refuse(t, b.checkpoints.Get, &stetv1.GetCheckpointRequest{Ref: "c2", Workspace: "relative"}, connect.CodeInvalidArgument)
	refuse(t, b.checkpoints.Get, &stetv1.GetCheckpointRequest{Ref: "c2", Workspace: checkpoint.WorkspaceID("/none")}, connect.CodeNotFound)
	refuse(t, b.checkpoints.Get, &stetv1.GetCheckpointRequest{Ref: "c2", Conversation: "none"}, connect.CodeNotFound)
	refuse(t, b.checkpoints.Get, &stetv1.GetCheckpointRequest{Ref: "c9", Workspace: b.dir}, connect.CodeNotFound)
	refuse(t, b.checkpoints.Get, &stetv1.GetCheckpointRequest{Ref: "c2", Workspace: b.dir + "/gone"}, connect.CodeNotFound)
	refuse(t, b.checkpoints.Create, &stetv1.CreateCheckpointRequest{Workspace: "/"}, connect.CodeInvalidArgument)
	refuse(t, b.checkpoints.Create, &stetv1.CreateCheckpointRequest{Workspace: b.dir + "/cart.go"}, connect.CodeInvalidArgument)
	refuse(t, b.checkpoints.Create, &stetv1.CreateCheckpointRequest{Workspace: b.dir, Paths: []string{"../x"}}, connect.CodeInvalidArgument)

	b.write(".gitignore", "*.log\n")
	b.write("build.log", "ignored\n")
	b.take(&stetv1.CreateCheckpointRequest{})
	got := call(t, b.checkpoints.Get, &stetv1.GetCheckpointRequest{Ref: "c3", Workspace: b.dir}).GetCheckpoint().GetNotCaptured()
	if len(got) != 1 || got[0].GetPath() != "build.log" || got[0].GetReason() != "ignored" {
		t.Errorf("not captured: %v, want build.log", got)
	}
	// What an agent says it wrote is looked at, and captured although ignored.
	b.write("unseen.txt", "elsewhere\n")
	b.take(&stetv1.CreateCheckpointRequest{Paths: []string{"build.log"}})
	call(t, b.checkpoints.File, &stetv1.CheckpointFileRequest{Ref: "c4", Workspace: b.dir, Path: "build.log"})
	refuse(t, b.checkpoints.File, &stetv1.CheckpointFileRequest{Ref: "c4", Workspace: b.dir, Path: "unseen.txt"}, connect.CodeNotFound)
}

func TestFilesOfACheckpoint(t *testing.T) {
	b := newBench(t)
	b.write("large.txt", strings.Repeat("<", 300<<10))
	b.write("image", "\x89PNG\x00\x01")
	if err := os.Symlink("cart.go", filepath.Join(b.dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(b.dir, "latin\xe9"), []byte("caf\xe9\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	ref := b.take(&stetv1.CreateCheckpointRequest{}).GetId()
	list := call(t, b.checkpoints.Files, &stetv1.CheckpointFilesRequest{Ref: ref})
	var got []string
	for _, f := range list.GetFiles() {
		got = append(got, f.GetKind()+" "+f.GetPath())
	}
	want := []string{
		"file cart.go", "file image", "file large.txt", "file latin\uFFFD", "dir lib", "file lib/price.go", "symlink link", "file notes.txt",
	}
	if !slices.Equal(got, want) || list.GetTruncated() {
		t.Errorf("files: %q, want %q", got, want)
	}
	list = call(t, b.checkpoints.Files, &stetv1.CheckpointFilesRequest{Ref: ref, Path: "lib"})
	if len(list.GetFiles()) != 1 || list.GetFiles()[0].GetPath() != "lib/price.go" || list.GetFiles()[0].GetSize() != 12 {
		t.Errorf("files of lib: %v", list)
	}
	refuse(t, b.checkpoints.Files, &stetv1.CheckpointFilesRequest{Ref: ref, Path: "cart.go"}, connect.CodeInvalidArgument)
	refuse(t, b.checkpoints.Files, &stetv1.CheckpointFilesRequest{Ref: ref, Path: "../lib"}, connect.CodeInvalidArgument)
	refuse(t, b.checkpoints.Files, &stetv1.CheckpointFilesRequest{Ref: ref, Path: "none"}, connect.CodeNotFound)

	file := func(path string) *stetv1.CheckpointFileResponse {
		return call(t, b.checkpoints.File, &stetv1.CheckpointFileRequest{Ref: ref, Path: path})
	}
	if f := file("cart.go"); string(f.GetContent()) != "one\n2 < 3\nthree\n" || f.GetHtml() != "one\n"+marked+"\nthree\n" || f.GetBinary() || f.GetTruncated() {
		t.Errorf("cart.go: %v", f)
	}
	if f := file("image"); !f.GetBinary() || f.GetHtml() != "" || len(f.GetContent()) != 6 {
		t.Errorf("image: %v", f)
	}
	if f := file("link"); string(f.GetContent()) != "cart.go" {
		t.Errorf("link: %v", f)
	}
	if f := file("large.txt"); !f.GetTruncated() || len(f.GetContent()) != 256<<10 || f.GetFile().GetSize() != 300<<10 {
		t.Errorf("large.txt: %d bytes, truncated: %v", len(f.GetContent()), f.GetTruncated())
	}
	refuse(t, b.checkpoints.File, &stetv1.CheckpointFileRequest{Ref: ref, Path: "lib"}, connect.CodeInvalidArgument)
	refuse(t, b.checkpoints.File, &stetv1.CheckpointFileRequest{Ref: ref, Path: "none"}, connect.CodeNotFound)
}

// marked is the line "2 < 3" of a program, as pages show it.
const marked = `<span class="m">2</span> &lt; <span class="m">3</span>`

func TestDiffOfCheckpoints(t *testing.T) {
	b := newBench(t)
	m := &stetv1.DiffRequest{From: b.before.GetId(), To: b.after.GetId()}
	d := call(t, b.checkpoints.Diff, m)
	if d.GetAdded() != 2 || d.GetRemoved() != 1 || len(d.GetFiles()) != 2 {
		t.Fatalf("diff: %v", d)
	}
	cart, price := d.GetFiles()[0], d.GetFiles()[1]
	if cart.GetPath() != "cart.go" || cart.GetAction() != "modify" || len(cart.GetHunks()) != 1 || cart.GetHunks()[0].GetFromLine() != 1 {
		t.Fatalf("cart.go: %v", cart)
	}
	var lines []string
	for _, l := range cart.GetHunks()[0].GetLines() {
		lines = append(lines, l.GetOp()+l.GetHtml())
	}
	if want := []string{" one", "-two", "+" + marked, " three"}; !slices.Equal(lines, want) {
		t.Errorf("lines of cart.go: %q, want %q", lines, want)
	}
	if price.GetPath() != "lib/price.go" || price.GetAction() != "add" || price.GetAdded() != 1 || price.GetHunks()[0].GetFromLine() != 0 {
		t.Errorf("lib/price.go: %v", price)
	}

	m.StatOnly, m.Paths = true, []string{"lib"}
	if d = call(t, b.checkpoints.Diff, m); len(d.GetFiles()) != 1 || d.GetAdded() != 1 || d.GetFiles()[0].GetHunks() != nil || d.GetFiles()[0].GetTruncated() {
		t.Errorf("figures of lib: %v", d)
	}

	b.write("image", "\x00")
	b.write("long.txt", strings.Repeat("a line of some length\n", 20_000))
	b.write("huge.txt", strings.Repeat("a line of some length\n", 200_000))
	d = call(t, b.checkpoints.Diff, &stetv1.DiffRequest{From: "c2", Workspace: b.dir})
	if len(d.GetFiles()) != 3 || d.GetAdded() != 20_000 {
		t.Fatalf("diff with the present: %d files, +%d", len(d.GetFiles()), d.GetAdded())
	}
	huge, image, long := d.GetFiles()[0], d.GetFiles()[1], d.GetFiles()[2]
	if !image.GetBinary() || image.GetHunks() != nil {
		t.Errorf("image: %v", image)
	}
	if !huge.GetTruncated() || huge.GetHunks() != nil {
		t.Errorf("huge.txt has %d hunks, truncated: %v", len(huge.GetHunks()), huge.GetTruncated())
	}
	if n := len(long.GetHunks()[0].GetLines()); !long.GetTruncated() || n != 256<<10/22 {
		t.Errorf("long.txt has %d lines, truncated: %v", n, long.GetTruncated())
	}
	if n := len(call(t, b.checkpoints.List, &stetv1.ListCheckpointsRequest{Workspace: b.dir}).GetCheckpoints()); n != 2 {
		t.Errorf("there are %d checkpoints after a look at the present, want 2", n)
	}
	refuse(t, b.checkpoints.Diff, &stetv1.DiffRequest{Workspace: b.dir}, connect.CodeInvalidArgument)
	refuse(t, b.checkpoints.Diff, &stetv1.DiffRequest{From: b.before.GetId()}, connect.CodeInvalidArgument)
}

func TestRewindOverTheWire(t *testing.T) {
	b := newBench(t)
	req, plan := b.plan(func(m *stetv1.PlanRewindRequest) { m.Files, m.WithConversation = true, true })
	var got []string
	for _, f := range plan.GetFiles() {
		got = append(got, f.GetAction()+" "+f.GetPath())
		if f.GetByConversation() != b.conv || f.GetByTurn() != 1 {
			t.Errorf("%s is by %q, turn %d", f.GetPath(), f.GetByConversation(), f.GetByTurn())
		}
	}
	if want := []string{"restore cart.go", "delete lib", "delete lib/price.go"}; !slices.Equal(got, want) {
		t.Errorf("plan: %q, want %q", got, want)
	}
	if plan.GetTo().GetId() != b.before.GetId() || plan.GetNeedsChoice() || plan.GetUntouched() != 1 || plan.GetConversationEffect() != "continues after turn 1; turn 2 stays as a branch" {
		t.Errorf("plan: %v", plan)
	}
	b.has("cart.go", "one\n2 < 3\nthree\n")

	// The workspace moves on: the plan is no longer what was agreed to.
	refuse(t, b.checkpoints.Rewind, &stetv1.RewindRequest{Plan: req}, connect.CodeInvalidArgument)
	b.write("notes.txt", "mine, and more\n")
	refuse(t, b.checkpoints.Rewind, &stetv1.RewindRequest{Plan: req, PlanToken: plan.GetPlanToken()}, connect.CodeFailedPrecondition)
	b.has("cart.go", "one\n2 < 3\nthree\n")

	plan = call(t, b.checkpoints.PlanRewind, req)
	done := call(t, b.checkpoints.Rewind, &stetv1.RewindRequest{Plan: req, PlanToken: plan.GetPlanToken()})
	if done.GetOperation() != "op1" || done.GetSaved() == "" || done.GetFiles() != 2 {
		t.Errorf("rewind: %v", done)
	}
	rewound := func() {
		t.Helper()
		b.has("cart.go", "one\ntwo\nthree\n")
		b.has("lib/price.go", "")
		b.has("notes.txt", "mine, and more\n")
		b.atTurn(1)
	}
	rewound()
	refuse(t, b.checkpoints.Redo, &stetv1.RedoRequest{Workspace: b.dir}, connect.CodeFailedPrecondition)
	if done = call(t, b.checkpoints.Undo, &stetv1.UndoRequest{Workspace: b.dir}); done.GetOperation() != "op2" {
		t.Errorf("undo: %v", done)
	}
	b.has("cart.go", "one\n2 < 3\nthree\n")
	b.has("lib/price.go", "package lib\n")
	b.atTurn(2)
	b.operations("op2 undo", "op1 rewind redo")
	refuse(t, b.checkpoints.Undo, &stetv1.UndoRequest{Workspace: b.dir}, connect.CodeFailedPrecondition)
	call(t, b.checkpoints.Redo, &stetv1.RedoRequest{Workspace: b.dir})
	rewound()
	b.operations("op3 redo", "op2 undo", "op1 rewind undo")

	// Again to where everything is already: nothing is done.
	plan = call(t, b.checkpoints.PlanRewind, req)
	if done = call(t, b.checkpoints.Rewind, &stetv1.RewindRequest{Plan: req, PlanToken: plan.GetPlanToken()}); done.GetOperation() != "" {
		t.Errorf("a rewind that changes nothing: %v", done)
	}
}

// atTurn checks how many turns the conversation has.
func (b *bench) atTurn(want uint32) {
	b.t.Helper()
	got := call(b.t, b.conversations.Transcript, &stetv1.TranscriptRequest{Id: b.conv}).GetTotalTurns()
	if got != want {
		b.t.Errorf("the conversation has %d turns, want %d", got, want)
	}
}

// operations compares the log, page by page, with id, kind, and what can be done
// about each operation.
func (b *bench) operations(want ...string) {
	b.t.Helper()
	var got []string
	page := &stetv1.Page{Limit: 1}
	for range len(want) + 1 {
		res := call(b.t, b.checkpoints.Operations, &stetv1.OperationsRequest{Workspace: b.dir, Page: page})
		for _, op := range res.GetOperations() {
			text := op.GetId() + " " + op.GetKind()
			if op.GetCanUndo() {
				text += " undo"
			}
			if op.GetCanRedo() {
				text += " redo"
			}
			if op.GetWorkspace() != b.dir || op.GetConversation() != b.conv || op.GetSummary() == "" || op.GetTimeMs() == 0 || op.GetSaved() == "" {
				b.t.Errorf("operation: %v", op)
			}
			got = append(got, text)
		}
		if page.Cursor = res.GetNextCursor(); page.Cursor == "" {
			break
		}
	}
	if !slices.Equal(got, want) {
		b.t.Errorf("operations: %q, want %q", got, want)
	}
}

func TestConflictsOverTheWire(t *testing.T) {
	b := newBench(t)
	b.write("cart.go", "one\n2 < 3\nthree\nfour, by hand\n")
	try := func(change func(*stetv1.PlanRewindRequest)) (*stetv1.RewindRequest, bool) {
		req, plan := b.plan(change)
		return &stetv1.RewindRequest{Plan: req, PlanToken: plan.GetPlanToken()}, plan.GetNeedsChoice()
	}
	req, needs := try(nil)
	if !needs {
		t.Error("a plan with a conflict needs no choice")
	}
	if msg := refuse(t, b.checkpoints.Rewind, req, connect.CodeFailedPrecondition); !strings.Contains(msg, "cart.go") {
		t.Errorf("the conflict is not named: %s", msg)
	}
	b.has("lib/price.go", "package lib\n")
	refuse(t, b.checkpoints.PlanRewind, &stetv1.PlanRewindRequest{Ref: "c1", Workspace: b.dir, Conflicts: "whatever"}, connect.CodeInvalidArgument)
	refuse(t, b.checkpoints.PlanRewind, &stetv1.PlanRewindRequest{Ref: "c1", Workspace: b.dir, OnlyTurn: 1}, connect.CodeInvalidArgument)
	refuse(t, b.checkpoints.PlanRewind, &stetv1.PlanRewindRequest{Ref: "c1", Workspace: b.dir, WithConversation: true, Paths: []string{"lib"}}, connect.CodeInvalidArgument)

	req, needs = try(func(m *stetv1.PlanRewindRequest) { m.Choices = map[string]string{"cart.go": "merge"} })
	if needs {
		t.Error("a plan with a choice needs another one")
	}
	call(t, b.checkpoints.Rewind, req)
	b.has("cart.go", "one\ntwo\nthree\nfour, by hand\n")
	b.has("lib/price.go", "")
	call(t, b.checkpoints.Undo, &stetv1.UndoRequest{Workspace: b.dir})

	// Only some files: the rest and the conversation stay.
	req, needs = try(func(m *stetv1.PlanRewindRequest) { m.Paths = []string{"lib"} })
	if needs {
		t.Error("a conflict elsewhere needs a choice")
	}
	call(t, b.checkpoints.Rewind, req)
	b.has("cart.go", "one\n2 < 3\nthree\nfour, by hand\n")
	b.has("lib/price.go", "")
	b.atTurn(2)
	// A file that came back meanwhile stops the undo.
	b.write("lib/price.go", "package other\n")
	if msg := refuse(t, b.checkpoints.Undo, &stetv1.UndoRequest{Workspace: b.dir}, connect.CodeFailedPrecondition); !strings.Contains(msg, "lib/price.go") {
		t.Errorf("the conflict is not named: %s", msg)
	}
	b.has("lib/price.go", "package other\n")
}

func TestPinsOverTheWire(t *testing.T) {
	b := newBench(t)
	call(t, b.checkpoints.Pin, &stetv1.PinRequest{Name: "good", Ref: "before:turn:1", Workspace: b.dir, Conversation: b.conv})
	pins := call(t, b.checkpoints.ListPins, &stetv1.ListPinsRequest{}).GetPins()
	if len(pins) != 1 || pins[0].GetName() != "good" || pins[0].GetCheckpoint() != b.before.GetId() || pins[0].GetConversation() != b.conv || pins[0].GetTimeMs() == 0 ||
		pins[0].GetWorkspace() != b.dir || pins[0].GetCheckpointName() != "c1" {
		t.Errorf("pins: %v", pins)
	}
	got := call(t, b.checkpoints.Get, &stetv1.GetCheckpointRequest{Ref: "pin:good"}).GetCheckpoint()
	if got.GetId() != b.before.GetId() || !slices.Equal(got.GetPins(), []string{"good"}) {
		t.Errorf("the pinned checkpoint: %v", got)
	}
	refuse(t, b.checkpoints.Pin, &stetv1.PinRequest{Ref: b.before.GetId()}, connect.CodeInvalidArgument)
	refuse(t, b.checkpoints.Pin, &stetv1.PinRequest{Name: "now", Ref: "@", Workspace: b.dir}, connect.CodeInvalidArgument)
	refuse(t, b.checkpoints.Unpin, &stetv1.UnpinRequest{Name: "good", Workspace: t.TempDir()}, connect.CodeNotFound)
	call(t, b.checkpoints.Unpin, &stetv1.UnpinRequest{Name: "good", Workspace: b.dir})
	refuse(t, b.checkpoints.Unpin, &stetv1.UnpinRequest{Name: "good"}, connect.CodeNotFound)
	if pins := call(t, b.checkpoints.ListPins, &stetv1.ListPinsRequest{}).GetPins(); len(pins) != 0 {
		t.Errorf("pins after the last was removed: %v", pins)
	}
}

// What a checkpoint is needs no directory: references are found when it is gone.
func TestReferencesWithoutTheDirectory(t *testing.T) {
	b := newBench(t)
	if err := os.RemoveAll(b.dir); err != nil {
		t.Fatal(err)
	}
	for _, m := range []*stetv1.GetCheckpointRequest{
		{Ref: "turn:1", Workspace: b.dir}, {Ref: "turn:1", Conversation: b.conv}, {Ref: "m1", Conversation: b.conv},
		{Ref: b.after.GetId(), Workspace: b.dir}, {Ref: b.after.GetId()[:24], Workspace: checkpoint.WorkspaceID("/elsewhere")},
	} {
		if got := call(t, b.checkpoints.Get, m).GetCheckpoint().GetId(); got != b.after.GetId() {
			t.Errorf("%v: got %s, want %s", m, got, b.after.GetId())
		}
	}
	refuse(t, b.checkpoints.Create, &stetv1.CreateCheckpointRequest{Workspace: b.dir}, connect.CodeNotFound)
}
