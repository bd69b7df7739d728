package checkpoint

import (
	"context"
	"fmt"

	"github.com/stet-dev/stet/blob"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// SetState sets the state of a checkpoint's conversation, and the message at which it
// was saved. It is for agents that write their record after the files of a turn were
// captured; nothing else in a checkpoint changes once it is made.
func (w *Workspace) SetState(ctx context.Context, id string, root blob.ID, message string) error {
	if err := w.setState(ctx, id, root, message); err != nil {
		return fmt.Errorf("set the state of checkpoint %q: %w", id, err)
	}
	return nil
}

func (w *Workspace) setState(ctx context.Context, id string, root blob.ID, message string) error {
	_, leave, err := w.enter(ctx) // a capture expects that its parent does not change
	if err != nil {
		return err
	}
	defer leave()
	rec, err := w.s.Get(ctx, id)
	if err != nil {
		return err
	}
	if rec.Workspace != w.id || rec.Kind == Import {
		return fmt.Errorf("%w: it was not made in this workspace", ErrNotFound)
	}
	key := keyspace.Checkpoint(id)
	row, err := w.s.rows.Get(ctx, key)
	if err != nil {
		return err
	}
	stored := new(stetv1.CheckpointRecord) // keeps fields that only a newer release knows
	if err := unmarshal(row.Value, stored); err != nil {
		return err
	}
	stored.Root, stored.MessageId = idBytes(root), message
	data, err := marshal(stored)
	if err != nil {
		return err
	}
	return w.s.rows.Commit(ctx, &kv.Batch{
		Expect: []kv.Expect{{Key: key, Version: row.Version}},
		Set:    []kv.Set{{Key: key, Value: data}},
		Refs:   known(root),
	})
}
