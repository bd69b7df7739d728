package agenttools

import (
	"context"
	"errors"

	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/workspace"
)

// CheckpointArgs are the arguments of the tool checkpoint.
type CheckpointArgs struct {
	Label string `json:"label,omitempty" jsonschema:"a few words for the history, such as \"before the refactoring\""`
}

// Checkpoint saves the workspace as it is now.
func (t *Tools) Checkpoint(ctx context.Context, args CheckpointArgs) (text string, err error) {
	err = t.use(ctx, true, func(p *Place) error {
		text, err = t.checkpoint(ctx, p, args)
		return err
	})
	return text, err
}

func (t *Tools) checkpoint(ctx context.Context, p *Place, args CheckpointArgs) (string, error) {
	c, err := t.caller(ctx, p)
	if err != nil {
		return "", err
	}
	req := checkpoint.Request{Label: clip(args.Label, 200), Author: c.author}
	if c.turn != nil {
		// Without a running turn it is unknown who changed what since the last checkpoint,
		// so the changes must not count as the session's work.
		req.Conversation, req.Turn, req.MessageID, req.Holder = c.id, c.turn.Number, c.turn.MessageID, c.turn.Holder
		req.Root, err = p.DB.Conversations().Head(ctx, c.id)
		if err != nil && !errors.Is(err, conversation.ErrNotFound) {
			return "", err
		}
	}
	res, err := p.Space.Checkpoint(ctx, req)
	if err != nil {
		return "", err
	}
	if res.Record == nil {
		return "", refused("nothing was saved: %s", res.Skipped)
	}
	var a answer
	rec := res.Record
	a.line("Saved as %s: %s changed since the checkpoint before it. `rewind_preview` with to=%q shows how to come back here.",
		code(rec.Name()), plural(int(rec.FilesChanged), "file"), rec.Name())
	a.notCaptured(res.NotCaptured)
	if res.StateError != nil {
		a.line("The state of the conversation is lost, so that the checkpoint has only the files: %v", res.StateError)
	}
	if c.turn == nil {
		a.line("stet is not told about the turns of this session, so it cannot say which later changes are its work: a rewind to here will take back nothing unless `exact` is set. `stet connect` changes that.")
	}
	return a.String(), nil
}

// notCaptured lists what was seen but not captured, except what no user expects to be
// captured.
func (a *answer) notCaptured(skipped []workspace.Skipped) {
	var paths []string
	for _, s := range skipped {
		if !s.Reason.ByRule() && s.Reason != workspace.ReasonRepository {
			paths = append(paths, s.Path)
		}
	}
	if len(paths) > 0 {
		a.line("Not captured: %s", few(paths, 5))
	}
}
