package cli

import (
	"context"
	"errors"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/agents"
)

// settle ends the turns in a workspace that someone interrupted, as far as the records of
// the agents say so: what follows is not their work. The session that asks is left out; its
// own event says what it does. A record that cannot be read only costs that knowledge.
func (a *app) settle(ctx context.Context, db *stet.DB, space *checkpoint.Workspace, asking string) {
	open, err := space.AtWork(ctx)
	if err != nil {
		return // whoever goes on meets the same error
	}
	for _, t := range open {
		if t.Holder.ID == "" || t.Holder.ID == asking {
			continue
		}
		info, err := db.Conversations().Get(ctx, t.Conversation)
		if err != nil {
			continue // of a run, or removed
		}
		adapter, err := agents.Find(info.Agent)
		if err != nil {
			continue // not connected by hooks
		}
		if err := a.settleTurn(ctx, db, adapter, space, t); err != nil && !errors.Is(err, blob.ErrReadOnly) && ctx.Err() == nil {
			a.hookFailed(adapter.Name(), err)
		}
	}
}

func (a *app) settleTurn(ctx context.Context, db *stet.DB, adapter foreign.Adapter, space *checkpoint.Workspace, t checkpoint.Turn) error {
	r, err := a.recorder(db, adapter)
	if err != nil {
		return err
	}
	return r.Settle(ctx, space, t)
}
