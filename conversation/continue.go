package conversation

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation/graph"
	"github.com/stet-dev/stet/conversation/wirelimit"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// Present returns the condition that a conversation exists as it is now, for a commit of
// another service that refers to it. It fails with ErrNotFound if there is none.
func (s *Store) Present(ctx context.Context, id string) (kv.Expect, error) {
	_, version, err := s.record(ctx, id)
	return kv.Expect{Key: keyspace.Conversation(id), Version: version}, err
}

// Continuation is the next save of a conversation, to be made by a commit of another
// service, such as the one that saves the state of an agent.
type Continuation struct {
	// Save is the entry of the history. If the state is already the current one, Save is
	// zero and Batch is empty.
	Save Save
	// Root is the blob of the state. It must be stored before the commit.
	Root blob.Blob
	// Before is the root that is current now, zero if there is none. It exists until
	// the commit: a collector that runs before sees what it refers to.
	Before blob.ID
	// Batch is what the commit must contain. Its Refs name the root only; the caller
	// adds the blobs that Before does not refer to.
	Batch kv.Batch
}

// Continue plans a save that makes a state the current one, on top of whatever is current
// now. The commit fails with kv.ErrConflict if another writer saves first, and makes
// handles that were opened for writing stale. Continue fails with ErrNotFound if there is
// no such conversation. The caller must check that the blobs that the state refers to are
// stored.
func (s *Store) Continue(ctx context.Context, id string, state *agentv1.ConversationStateStructure, author string) (Continuation, error) {
	rec, version, err := s.record(ctx, id)
	if err != nil {
		return Continuation{}, err
	}
	raw, err := marshal(state)
	if err != nil {
		return Continuation{}, err
	}
	if err := parseRoot(raw); err != nil {
		return Continuation{}, err
	}
	if err := new(graph.Nesting).Check(ctx, s.blobs.Get, graph.State, raw); err != nil {
		return Continuation{}, errors.Join(ErrInvalid, err)
	}
	head, err := s.lastSave(ctx, id)
	if err != nil {
		return Continuation{}, err
	}
	out := Continuation{Before: head.Root, Root: blob.Blob{ID: blob.Sum(raw), Data: raw, Like: head.Root}}
	if same, err := s.sameState(ctx, head, state, out.Root.ID); err != nil || same {
		return out, err
	}
	seq, err := nextSeq(head.Seq)
	if err != nil {
		return Continuation{}, err
	}
	out.Save = Save{
		Seq: seq, Parent: head.Seq, Root: out.Root.ID, Time: s.now(), Author: author,
		Turns: uint64(len(state.GetTurns()) + len(state.GetTurnsOld())), Kind: KindSave, Branch: head.Branch,
	}
	listed := rec.CreatedAtMs
	if head.Seq > 0 {
		listed = head.Time.UnixMilli()
	}
	if err := out.plan(id, version, listed); err != nil {
		return out, err
	}
	s.filters.Store(nil) // the caller would not notice that it is outdated
	return out, s.file(ctx, rec, listed, out.Save.Time.UnixMilli(), &out.Batch)
}

// sameState reports whether a state is the current one, regardless of the order of the
// fields in its root.
func (s *Store) sameState(ctx context.Context, head Save, state *agentv1.ConversationStateStructure, id blob.ID) (bool, error) {
	if head.Seq == 0 || head.Root == id {
		return head.Root == id && head.Seq > 0, nil
	}
	data, err := s.blobs.Get(ctx, head.Root)
	if errors.Is(err, blob.ErrNotFound) || errors.Is(err, blob.ErrCorrupt) {
		return false, nil // a damaged current state can still be replaced
	}
	if err != nil {
		return false, fmt.Errorf("read root of conversation: %w", err)
	}
	now := new(agentv1.ConversationStateStructure)
	if err := wirelimit.Unmarshal(data, now, rootLimits); err != nil {
		return false, nil
	}
	return proto.Equal(now, state), nil
}

// plan makes the batch of a save; listed is the time of the row that lists the
// conversation now.
func (c *Continuation) plan(id string, version uint64, listed int64) error {
	row, err := c.Save.row()
	if err != nil {
		return err
	}
	c.Batch = kv.Batch{
		Expect: []kv.Expect{{Key: keyspace.Conversation(id), Version: version}, {Key: keyspace.Save(id, c.Save.Seq)}},
		Delete: []string{keyspace.ByTime(listed, id)},
		Set: []kv.Set{
			{Key: keyspace.Head(id), Value: []byte(c.Root.ID.String())},
			{Key: keyspace.Save(id, c.Save.Seq), Value: row},
			{Key: keyspace.ByTime(c.Save.Time.UnixMilli(), id)},
			changed(id),
		},
		Refs: []blob.ID{c.Root.ID},
	}
	return nil
}
