package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/stet-dev/stet/bisect"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/fault"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/timeline"
	"github.com/stet-dev/stet/workspace"
)

// exactEdit is a tool call of a turn whose effect on one file is known exactly.
type exactEdit struct {
	Turn uint64
	Step int // number of the tool call in its turn, from 1
	Tool string
	Path string
	// apply returns the file after the call; false if the file before does not fit.
	apply func(before []byte, exists bool) ([]byte, bool)
}

func (e *exactEdit) label() string {
	return fmt.Sprintf("turn %d · call %d  %s %s", e.Turn, e.Step, e.Tool, printable(e.Path))
}

// narrow goes on from a checkpoint to the single tool call, where the calls of its turn
// explain what changed. It returns the states before and after the call, or nothing if that
// is not known.
func (b *bisecting) narrow(ctx context.Context, found bisect.Found) ([]bisectState, error) {
	good, bad := &b.states[found.Good], &b.states[found.Bad]
	if len(found.Skipped) > 0 || bad.rec == nil || bad.forgotten > 0 {
		return nil, nil
	}
	edits, err := b.edits(ctx, bad)
	if err != nil || len(edits) == 0 {
		return nil, err
	}
	states, err := b.replay(ctx, good, bad, edits)
	if err != nil || len(states) < 2 {
		return nil, err
	}
	if len(states) == 2 && states[1].edit != nil { // the only one
		return states, nil
	}
	b.app.say("narrowing to one of %s", plural(int64(len(states)-1), "step"))
	inner, err := b.search(ctx, states)
	switch {
	case errors.Is(err, bisect.ErrTooFew), errors.Is(err, bisect.ErrBadEnd), errors.Is(err, bisect.ErrGoodEnd):
		return nil, nil // the command is not as certain as it seemed
	case err != nil || len(inner.Skipped) > 0 || states[inner.Bad].edit == nil:
		return nil, err
	}
	return states[inner.Good : inner.Bad+1], nil
}

// edits lists the exact edits of the turn that a checkpoint was taken in or after.
func (b *bisecting) edits(ctx context.Context, s *bisectState) ([]*exactEdit, error) {
	rec := s.rec
	if rec.Conversation == "" || rec.Turn == 0 || rec.Root.IsZero() {
		return nil, nil
	}
	state, err := b.p.db.Conversations().HydrateRoot(ctx, rec.Root, &conversation.HydrateOptions{
		TurnFrom: int(rec.Turn) - 1, TurnTo: int(rec.Turn), OnlyTurns: true, Lenient: true,
	})
	if errors.Is(err, conversation.ErrDataLoss) {
		return nil, nil
	}
	if err != nil || len(state.Turns) == 0 {
		return nil, err
	}
	var edits []*exactEdit
	calls := 0
	for _, item := range state.Turns[0].Steps {
		step, err := item.Decode()
		if err != nil || step.GetToolCall() == nil {
			continue
		}
		calls++
		if e := editOf(step.GetToolCall()); e != nil {
			e.Turn, e.Step, e.Tool = rec.Turn, calls, timeline.ToolName(step.GetToolCall())
			if e.Path = b.within(e.Path); e.Path != "" {
				edits = append(edits, e)
			}
		}
	}
	return edits, nil
}

// within returns a path that a tool named as a path of the workspace, or "".
func (b *bisecting) within(path string) string {
	if filepath.IsAbs(path) {
		rel, ok := relative(b.p.space.Path(), path)
		if !ok {
			return ""
		}
		path = rel
	}
	path = filepath.ToSlash(filepath.Clean(path))
	if workspace.CheckPath(path) != nil {
		return ""
	}
	return path
}

// replay makes the states between two checkpoints by repeating edits. It returns none if the
// edits do not fit the files. If they do not explain everything, such as what a command
// changed, the last state is the later checkpoint.
func (b *bisecting) replay(ctx context.Context, good, bad *bisectState, edits []*exactEdit) ([]bisectState, error) {
	states := []bisectState{*good}
	tree := good.tree
	for _, e := range edits {
		next, err := editTree(ctx, b.look.blobs, tree, bad.tree, e)
		if errors.Is(err, errNotExact) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if next == tree {
			continue // an earlier checkpoint has it already
		}
		tree = next
		states = append(states, bisectState{side: side{rec: bad.rec, tree: tree, name: bad.name}, edit: e})
	}
	if tree != bad.tree {
		states = append(states, *bad)
	}
	return states, nil
}

var errNotExact = fault.New(fault.Conflict, "the edit does not fit the file")

// editTree returns a tree with one edit made. The mode of a new file is that of the later
// tree.
func editTree(ctx context.Context, blobs blob.Store, tree, later blob.ID, e *exactEdit) (blob.ID, error) {
	entry, err := workspace.Lookup(ctx, blobs, tree, e.Path)
	exists := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return blob.ID{}, err
	}
	var before []byte
	if exists {
		if entry.Kind != workspace.File {
			return blob.ID{}, errNotExact
		}
		if before, err = workspace.ReadFile(ctx, blobs, entry); err != nil {
			return blob.ID{}, err
		}
	}
	after, fits := e.apply(before, exists)
	if !fits {
		return blob.ID{}, errNotExact
	}
	if exists && bytes.Equal(before, after) {
		return tree, nil
	}
	made, err := workspace.PutFile(ctx, blobs, bytes.NewReader(after))
	if err != nil {
		return blob.ID{}, err
	}
	made.Name, made.Mode = filepath.Base(e.Path), 0o644
	if exists {
		made.Mode = entry.Mode
	} else if there, err := workspace.Lookup(ctx, blobs, later, e.Path); err == nil && there.Kind == workspace.File {
		made.Mode = there.Mode
	}
	return workspace.Edit(ctx, blobs, tree, map[string]*workspace.Entry{e.Path: &made})
}

// editOf returns what a tool call did to a file, or nil if the call does not say exactly.
func editOf(call *agentv1.ToolCall) *exactEdit {
	if done := call.GetEditToolCall().GetResult().GetSuccess(); done != nil && done.Path != "" {
		return wholeEdit(done)
	}
	named := call.GetMcpToolCall()
	if named.GetResult().GetSuccess() == nil {
		return nil
	}
	text := func(name string) (string, bool) {
		v, ok := named.GetArgs().GetArgs()[name]
		return v.GetStringValue(), ok
	}
	path, _ := text("file_path")
	if path == "" {
		return nil
	}
	switch named.GetArgs().GetToolName() {
	case "Write", "write_file":
		if content, ok := text("content"); ok {
			return &exactEdit{Path: path, apply: func([]byte, bool) ([]byte, bool) { return []byte(content), true }}
		}
	case "Edit", "replace":
		from, ok1 := text("old_string")
		to, ok2 := text("new_string")
		if ok1 && ok2 {
			return &exactEdit{Path: path, apply: replacing(from, to, named.GetArgs().GetArgs()["replace_all"].GetBoolValue())}
		}
	}
	return nil
}

// wholeEdit is an edit that names the file before and after.
func wholeEdit(done *agentv1.EditSuccess) *exactEdit {
	was, after := done.BeforeFullFileContent, done.AfterFullFileContent
	return &exactEdit{Path: done.Path, apply: func(before []byte, exists bool) ([]byte, bool) {
		fits := exists == (was != nil) && string(before) == done.GetBeforeFullFileContent()
		return []byte(after), fits || exists && string(before) == after
	}}
}

// replacing is an edit that replaces a text, which occurs once unless all are meant.
func replacing(from, to string, all bool) func([]byte, bool) ([]byte, bool) {
	return func(before []byte, exists bool) ([]byte, bool) {
		text := string(before)
		n := strings.Count(text, from)
		switch {
		case from == "" && (!exists || text == ""):
			return []byte(to), true
		case from == "" || n == 0 && !strings.Contains(text, to), n > 1 && !all:
			return nil, false
		case n == 0:
			return before, true // an earlier checkpoint has it already
		}
		return []byte(strings.ReplaceAll(text, from, to)), true
	}
}
