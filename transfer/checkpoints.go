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

// captured is a checkpoint that the target lacks, with its blobs.
type captured struct {
	row kv.Row
	rec *stetv1.CheckpointRecord
	ws  *stetv1.WorkspaceRecord // of the source; nil if it has none
	ids []blob.ID               // without those of earlier units
}

// lookAtCheckpoints finds the checkpoints of a conversation that the target lacks,
// oldest first, and their blobs.
func (m *mover) lookAtCheckpoints(ctx context.Context, conversation string) ([]captured, error) {
	var ids []string
	for row, err := range m.from.Rows.Scan(ctx, keyspace.ConversationCheckpoints(conversation), kv.ScanOptions{KeysOnly: true}) {
		if err != nil {
			return nil, fmt.Errorf("list checkpoints: %w", err)
		}
		ids = append(ids, keyspace.Last(row.Key))
	}
	var all []captured
	for _, id := range ids {
		one, err := m.lookAtCheckpoint(ctx, conversation, id)
		if err != nil {
			return nil, fmt.Errorf("checkpoint %s: %w", id, err)
		}
		if one != nil {
			all = append(all, *one)
		}
	}
	return all, nil
}

// lookAtCheckpoint returns nil if the target already has the checkpoint.
func (m *mover) lookAtCheckpoint(ctx context.Context, conversation, id string) (*captured, error) {
	one, err := m.lookAtAnyCheckpoint(ctx, id)
	if err == nil && one != nil && one.rec.GetConversation() != conversation {
		return nil, fmt.Errorf("%w: row %q: listed with conversation %q, but belongs to %q", kv.ErrCorrupt, one.row.Key, conversation, one.rec.GetConversation())
	}
	return one, err
}

// lookAtAnyCheckpoint is lookAtCheckpoint for a checkpoint of any conversation or none.
func (m *mover) lookAtAnyCheckpoint(ctx context.Context, id string) (*captured, error) {
	key := keyspace.Checkpoint(id)
	_, err := m.to.Rows.Get(ctx, key)
	if !errors.Is(err, kv.ErrNotFound) {
		return nil, err
	}
	row, err := m.from.Rows.Get(ctx, key)
	if errors.Is(err, kv.ErrNotFound) {
		return nil, nil // removed since it was listed
	}
	if err != nil {
		return nil, err
	}
	one := &captured{row: row, rec: new(stetv1.CheckpointRecord)}
	if err := decode(row, one.rec); err != nil {
		return nil, err
	}
	if one.ws, err = m.workspace(ctx, one.rec); err != nil {
		return nil, err
	}
	one.ids, err = m.captured(ctx, one.rec)
	return one, err
}

// checkpoints adds checkpoints whose blobs were sent, each with its own commit.
func (m *mover) checkpoints(ctx context.Context, all []captured, moved *Moved) error {
	for _, one := range all {
		if !m.opts.DryRun {
			if err := m.checkpoint(ctx, one); err != nil {
				return fmt.Errorf("checkpoint %s: %w", one.rec.GetId(), err)
			}
		}
		moved.Checkpoints++
		m.progress()
	}
	return nil
}

func (m *mover) checkpoint(ctx context.Context, one captured) error {
	key := one.row.Key
	one.rec.Received = true // the target did not capture it
	value, err := encode(one.rec)
	if err != nil {
		return err
	}
	b := &kv.Batch{
		Expect: []kv.Expect{{Key: key}},
		Set:    []kv.Set{{Key: key, Value: value}},
		Refs:   one.ids,
	}
	if of := one.rec.GetConversation(); of != "" {
		b.Set = append(b.Set, kv.Set{Key: keyspace.ConversationCheckpoint(of, one.rec.GetId())})
	}
	if err := m.place(ctx, one, b); err != nil {
		return err
	}
	return m.commit(ctx, b)
}

// captured returns the blobs of a checkpoint.
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

// place adds the checkpoint to those of its directory, if possible: the checkpoints
// of a directory are one numbered sequence, and a store that watches the same
// directory has its own sequence. Otherwise the checkpoint is found by its
// conversation and its id.
func (m *mover) place(ctx context.Context, one captured, b *kv.Batch) error {
	rec := one.rec
	if rec.GetKind() == stetv1.CheckpointKind_CHECKPOINT_KIND_IMPORT {
		return nil // it is not part of the sequence
	}
	key := keyspace.Workspace(rec.GetWorkspace())
	there := &stetv1.WorkspaceRecord{}
	row, err := m.to.Rows.Get(ctx, key)
	switch {
	case errors.Is(err, kv.ErrNotFound):
		if there = one.ws; there == nil {
			return nil
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

// workspace returns a record for a directory that is new to the target, or nil if the
// source has none either. The nonce is new: it identifies the staged files of a
// store.
func (m *mover) workspace(ctx context.Context, rec *stetv1.CheckpointRecord) (*stetv1.WorkspaceRecord, error) {
	row, err := m.from.Rows.Get(ctx, keyspace.Workspace(rec.GetWorkspace()))
	if errors.Is(err, kv.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return m.newWorkspace(row, rec.GetTimeMs())
}

// newWorkspace makes a record for the target from one of the source.
func (m *mover) newWorkspace(row kv.Row, createdMs int64) (*stetv1.WorkspaceRecord, error) {
	ws := new(stetv1.WorkspaceRecord)
	if err := decode(row, ws); err != nil {
		return nil, err
	}
	ws.Nonce = make([]byte, 4)
	rand.Read(ws.Nonce) // never fails
	ws.LastCheckpoint, ws.LastNumber, ws.CreatedAtMs = "", 0, createdMs
	ws.Turns = &stetv1.TurnsAtWork{} // those of the source do not continue here
	return ws, nil
}
