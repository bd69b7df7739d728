package agenttools

import (
	"context"
	"errors"

	"github.com/stet-dev/stet/checkpoint"
)

// UndoArgs are the arguments of the tool undo.
type UndoArgs struct {
	Conflicts string `json:"conflicts,omitempty" jsonschema:"files that changed since the rewind: without it they stop the undo; keep leaves them, merge keeps both changes"`
	Anybody   bool   `json:"anybody,omitempty" jsonschema:"undo the last rewind even if the user or another session made it; ask the user first"`
}

// Undo reverts the last rewind of the workspace.
func (t *Tools) Undo(ctx context.Context, args UndoArgs) (text string, err error) {
	err = t.use(ctx, false, func(p *Place) error {
		text, err = t.undo(ctx, p, args)
		return err
	})
	return text, err
}

func (t *Tools) undo(ctx context.Context, p *Place, args UndoArgs) (string, error) {
	c, err := t.caller(ctx, p)
	if err != nil {
		return "", err
	}
	opts := &checkpoint.UndoOptions{Author: c.author}
	switch args.Conflicts {
	case "":
	case "keep":
		opts.Choice = checkpoint.KeepMine
	case "merge":
		opts.Choice = checkpoint.Merge
	default:
		return "", refused("conflicts must be keep or merge, not %q", args.Conflicts)
	}
	op, err := p.next(ctx)
	switch {
	case err != nil:
		return "", err
	case op == nil:
		return "", refused("there is no rewind to undo")
	case !args.Anybody && !c.made(op):
		return "", refused("the last rewind (%s, %s, %q) was not made by this session; ask the user, then set anybody=true", op.ID(), when(op.Time), clip(op.Description, maxTitle))
	}
	opts.Operation = op.Seq
	done, err := p.Space.Undo(ctx, opts)
	var conflict *checkpoint.ConflictError
	switch {
	case errors.As(err, &conflict):
		return "", refused("these files changed since the rewind: %s; nothing was changed; set conflicts to keep or merge", few(conflict.Paths, 5))
	case errors.Is(err, checkpoint.ErrStalePlan):
		return "", refused("another rewind took place meanwhile; nothing was changed")
	case err != nil:
		return "", err
	}
	return doneText("Undid "+op.ID()+", restored", done), nil
}

// next returns the operation that the next undo reverts, or nil.
func (p *Place) next(ctx context.Context) (*checkpoint.Operation, error) {
	var log []*checkpoint.Operation
	for op, err := range p.Checkpoints.Operations(ctx) {
		if err != nil {
			return nil, err
		}
		if op.Workspace == p.Space.ID() {
			log = append(log, op)
		}
	}
	undo, _ := checkpoint.NextMoves(log)
	for _, op := range log {
		if undo[op.Seq] {
			return op, nil
		}
	}
	return nil, nil
}

// made reports whether the session made an operation. The log has the agent's name,
// and the session unless the rewind covered the work of all.
func (c caller) made(op *checkpoint.Operation) bool {
	return op.Author == c.author && (op.Conversation == "" || op.Conversation == c.id)
}
