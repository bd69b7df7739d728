package cli

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/stet-dev/stet/checkpoint"
)

// explainElsewhere adds to an error where the files of an imported checkpoint are.
func (p *place) explainElsewhere(ctx context.Context, req checkpoint.RewindRequest, err error) error {
	if !errors.Is(err, checkpoint.ErrOtherWorkspace) {
		return err
	}
	rec, resolveErr := p.space.Resolve(ctx, req.To, req.Conversation)
	if resolveErr != nil || rec == nil || rec.Kind != checkpoint.Import {
		return err
	}
	info, getErr := p.db.Conversations().Get(ctx, rec.Conversation)
	if getErr != nil || info.Workspace == "" {
		return err
	}
	where := tilde(info.Workspace)
	if _, statErr := os.Stat(info.Workspace); statErr != nil {
		where += ", which is not on this machine"
	}
	return fmt.Errorf("%w: %s belongs to %s; pass -C DIR to rewind its files in DIR", err, rec.Name(), where)
}

// ofImported reports whether a history consists of imported checkpoints of other directories.
func (p *place) ofImported(records ...*checkpoint.Record) bool {
	for _, rec := range records {
		if rec.Kind != checkpoint.Import || rec.Workspace == p.space.ID() {
			return false
		}
	}
	return len(records) > 0
}
