package timeline

import (
	"context"
	"errors"

	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
)

// Pinned is a pin with the checkpoint that it names.
type Pinned struct {
	checkpoint.Pin
	// Record is the checkpoint; nil if it is gone or cannot be read.
	Record *checkpoint.Record
	// Path is the directory of the workspace that has the name, or the id of the
	// workspace if its directory is unknown.
	Path string
}

// Pins returns the names of checkpoints of all workspaces, by name.
func (r *Reader) Pins(ctx context.Context) ([]Pinned, error) {
	var out []Pinned
	for pin, err := range r.checkpoints.Pins(ctx) {
		if err != nil {
			return nil, err
		}
		p := Pinned{Pin: pin}
		p.Record, err = r.checkpoints.Get(ctx, pin.Checkpoint)
		if err != nil && !errors.Is(err, checkpoint.ErrNotFound) && !conversation.Damaged(err) {
			return nil, err
		}
		if p.Path, err = r.directory(ctx, pin.Workspace, p.Record); err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// directory returns the path of a workspace, or its id. The workspace of an imported
// checkpoint need not be in this store; then only the conversation has its path.
func (r *Reader) directory(ctx context.Context, workspace string, rec *checkpoint.Record) (string, error) {
	path, err := r.checkpoints.WorkspacePath(ctx, workspace)
	if err == nil || !errors.Is(err, checkpoint.ErrNotFound) {
		return path, err
	}
	if rec == nil || rec.Kind != checkpoint.Import {
		return workspace, nil
	}
	info, err := r.conversations.Get(ctx, rec.Conversation)
	switch {
	case err == nil && checkpoint.WorkspaceID(info.Workspace) == workspace:
		return info.Workspace, nil
	case err == nil || errors.Is(err, conversation.ErrNotFound):
		return workspace, nil
	}
	return "", err
}
