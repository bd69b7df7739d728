package transfer

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// checkpoints adds the checkpoints of a conversation that the target lacks, the
// oldest first, each by a commit of its own.
func (m *mover) checkpoints(ctx context.Context, conversation string, moved *Moved) error {
	var ids []string
	for row, err := range m.from.Rows.Scan(ctx, keyspace.ConversationCheckpoints(conversation), kv.ScanOptions{KeysOnly: true}) {
		if err != nil {
			return fmt.Errorf("list checkpoints: %w", err)
		}
		ids = append(ids, keyspace.Last(row.Key))
	}
	for _, id := range ids {
		added, err := m.checkpoint(ctx, conversation, id)
		if err != nil {
			return fmt.Errorf("checkpoint %s: %w", id, err)
		}
		if added {
			moved.Checkpoints++
			m.progress()
		}
	}
	return nil
}

// checkpoint reports whether the target got a checkpoint that it lacked.
func (m *mover) checkpoint(ctx context.Context, conversation, id string) (bool, error) {
	key := keyspace.Checkpoint(id)
	_, err := m.to.Rows.Get(ctx, key)
	if !errors.Is(err, kv.ErrNotFound) {
		return false, err
	}
	row, err := m.from.Rows.Get(ctx, key)
	if errors.Is(err, kv.ErrNotFound) {
		return false, nil // removed since it was listed
	}
	if err != nil {
		return false, err
	}
	rec := new(stetv1.CheckpointRecord)
	if err := decode(row, rec); err != nil {
		return false, err
	}
	refs, err := m.captured(ctx, rec)
	if err != nil || m.opts.DryRun {
		return err == nil, err
	}
	b := &kv.Batch{
		Expect: []kv.Expect{{Key: key}},
		Set:    []kv.Set{{Key: key, Value: row.Value}, {Key: keyspace.ConversationCheckpoint(conversation, id)}},
		Refs:   refs,
	}
	if err := m.place(ctx, rec, b); err != nil {
		return false, err
	}
	return true, m.commit(ctx, b)
}

// captured moves the blobs of a checkpoint.
func (m *mover) captured(ctx context.Context, rec *stetv1.CheckpointRecord) ([]blob.ID, error) {
	var ids [3]blob.ID
	for i, raw := range [][]byte{rec.GetTree(), rec.GetRoot(), rec.GetNotCaptured()} {
		if len(raw) == 0 {
			continue
		}
		id, err := blob.IDFromBytes(raw)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", kv.ErrCorrupt, err)
		}
		ids[i] = id
	}
	tree, root, skipped := ids[0], ids[1], ids[2]
	refs, err := m.tree(ctx, tree, skipped)
	if err != nil || root.IsZero() {
		return refs, err
	}
	states, err := m.state(ctx, root)
	return append(refs, states...), err
}

// place adds the checkpoint to those of its directory, where that has a place for
// it: the checkpoints of a directory are one sequence with numbers of their own,
// and a store that watches the same directory has its own sequence. Elsewhere the
// checkpoint is found by its conversation and its id.
func (m *mover) place(ctx context.Context, rec *stetv1.CheckpointRecord, b *kv.Batch) error {
	key := keyspace.Workspace(rec.GetWorkspace())
	there := &stetv1.WorkspaceRecord{}
	row, err := m.to.Rows.Get(ctx, key)
	switch {
	case errors.Is(err, kv.ErrNotFound):
		if there, err = m.workspace(ctx, rec); err != nil || there == nil {
			return err
		}
	case err != nil:
		return err
	default:
		if err := decode(row, there); err != nil {
			return err
		}
	}
	if rec.GetNumber() <= there.GetLastNumber() || rec.GetId() <= there.GetLastCheckpoint() {
		return nil
	}
	there = proto.CloneOf(there)
	there.LastNumber, there.LastCheckpoint = rec.GetNumber(), rec.GetId()
	value, err := encode(there)
	if err != nil {
		return err
	}
	b.Expect = append(b.Expect, kv.Expect{Key: key, Version: row.Version})
	b.Set = append(b.Set, kv.Set{Key: key, Value: value}, kv.Set{Key: keyspace.WorkspaceCheckpoint(rec.GetWorkspace(), rec.GetId())})
	return nil
}

// workspace returns a record for a directory that the target does not know, or
// nil if the source does not know it either. The nonce is a new one: it tells
// which staged files are a store's own.
func (m *mover) workspace(ctx context.Context, rec *stetv1.CheckpointRecord) (*stetv1.WorkspaceRecord, error) {
	row, err := m.from.Rows.Get(ctx, keyspace.Workspace(rec.GetWorkspace()))
	if errors.Is(err, kv.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	ws := new(stetv1.WorkspaceRecord)
	if err := decode(row, ws); err != nil {
		return nil, err
	}
	ws.Nonce = make([]byte, 4)
	rand.Read(ws.Nonce) // never fails
	ws.LastCheckpoint, ws.LastNumber, ws.CreatedAtMs = "", 0, rec.GetTimeMs()
	ws.Turns = &stetv1.TurnsAtWork{} // those of the source do not go on here
	return ws, nil
}
