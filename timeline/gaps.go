package timeline

import (
	"context"
	"errors"

	"github.com/stet-dev/stet/checkpoint"
)

// gaps counts the checkpoints before each entry that are no longer kept. The numbers
// of a workspace are assigned without holes.
func (r *Reader) gaps(ctx context.Context, scope Scope, h *History) error {
	newer := make(map[string]*Entry) // by workspace
	for _, e := range h.Entries {
		if e.Record.Kind == checkpoint.Import {
			continue // no policy removes them, and they have numbers of their own
		}
		after := newer[e.Record.Workspace]
		newer[e.Record.Workspace] = e
		if after == nil {
			continue
		}
		var err error
		if after.Forgotten, err = r.between(ctx, e.Record, after.Record); err != nil {
			return err
		}
	}
	if h.Truncated {
		return nil
	}
	for _, oldest := range newer {
		var err error
		if oldest.Forgotten, err = r.missingBefore(ctx, oldest.Record, scope.Conversation != ""); err != nil {
			return err
		}
	}
	return nil
}

// between counts the checkpoints that are gone between two others of a workspace.
// Those of other conversations, and unreadable ones, are not gone.
func (r *Reader) between(ctx context.Context, older, newer *checkpoint.Record) (uint64, error) {
	if newer.Parent == older.ID || newer.Number <= older.Number+1 {
		return 0, nil
	}
	kept, err := r.checkpoints.CountBetween(ctx, newer.Workspace, older.ID, newer.ID)
	if missing := newer.Number - older.Number - 1; err == nil && missing > kept {
		return missing - kept, nil
	}
	return 0, err
}

// missingBefore counts the checkpoints that are gone right before the oldest one of a
// history. Those before the first turn of a conversation were not part of it.
func (r *Reader) missingBefore(ctx context.Context, rec *checkpoint.Record, conversation bool) (uint64, error) {
	if rec.Parent == "" || rec.Number == 0 || conversation && rec.Turn <= 1 && rec.Side == checkpoint.Before {
		return 0, nil
	}
	opts := &checkpoint.ListOptions{Before: rec.ID, Limit: 1}
	for before, err := range r.checkpoints.ListWorkspace(ctx, rec.Workspace, opts) {
		var bad *checkpoint.UnreadableError
		switch {
		case errors.As(err, &bad):
			return 0, nil // its number is not known
		case err != nil:
			return 0, err
		}
		return r.between(ctx, before, rec)
	}
	return rec.Number - 1, nil
}
