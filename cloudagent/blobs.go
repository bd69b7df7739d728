package cloudagent

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation/graph"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	aiserverv1 "github.com/stet-dev/stet/gen/aiserver/v1"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
)

// Latest is the conversation of an agent as it is now.
type Latest struct {
	// Conversation is nil before the first state.
	Conversation *agentv1.ConversationStateStructure
	// LastInteraction is the offset up to which the conversation contains the updates,
	// as the state says; empty if it does not say.
	LastInteraction string
	// Agent has the rest: the id of the state, its place and the status.
	Agent Agent
}

// Latest returns the conversation of an agent with its last interaction. Updates after
// that offset are not part of it yet.
func (s *Store) Latest(ctx context.Context, agent string) (Latest, error) {
	now, err := s.Get(ctx, agent)
	if err != nil || now.State.IsZero() {
		return Latest{Agent: now}, err
	}
	state, err := s.State(ctx, agent, now.State)
	if err != nil {
		return Latest{}, err
	}
	return Latest{Conversation: state.ConversationState, LastInteraction: state.LastInteractionUpdateOffsetKey, Agent: now}, nil
}

// GetLatestState is Latest in the compatible form, with the blobs of the latest turns.
// That form has no place for the last interaction.
func (s *Store) GetLatestState(ctx context.Context, agent string) (*aiserverv1.GetLatestAgentConversationStateResponse, error) {
	now, err := s.Get(ctx, agent)
	if err != nil {
		return nil, err
	}
	out := &aiserverv1.GetLatestAgentConversationStateResponse{LatestConversationState: &aiserverv1.LatestAgentConversationState{}}
	if now.State.IsZero() {
		return out, nil
	}
	state, err := s.State(ctx, agent, now.State)
	if err != nil {
		return nil, err
	}
	out.LatestConversationState.ConversationState = state.ConversationState
	out.LatestConversationState.NumPriorInteractionUpdates = state.NumPriorInteractionUpdates
	r := &reader{s: s, agent: agent, sent: make(map[blob.ID]struct{})}
	out.PreFetchedBlobs, err = r.blobsOf(ctx, now.State, 64, maxMessageBytes)
	return out, err
}

// GetBlob returns a blob of an agent: one that came with an event or is reachable
// from one of its states. For any other blob it returns ErrNotFound, whether or not
// the store has it. For a blob of the agent that the store has lost it returns
// ErrDataLoss.
func (s *Store) GetBlob(ctx context.Context, agent string, id blob.ID) ([]byte, error) {
	if err := s.checkOwner(ctx, agent, id); err != nil {
		return nil, err
	}
	data, err := s.blobs.Get(ctx, id)
	return data, lostBlob(agent, id, err)
}

// OpenBlob is GetBlob as a stream, for large blobs.
func (s *Store) OpenBlob(ctx context.Context, agent string, id blob.ID) (io.ReadCloser, error) {
	if err := s.checkOwner(ctx, agent, id); err != nil {
		return nil, err
	}
	r, err := blob.Open(ctx, s.blobs, id)
	return r, lostBlob(agent, id, err)
}

// lostBlob returns the error for a lost blob that belongs to an agent.
func lostBlob(agent string, id blob.ID, err error) error {
	if errors.Is(err, blob.ErrNotFound) {
		return fmt.Errorf("%w: blob %s of agent %s: %w", ErrDataLoss, id, agent, err)
	}
	return err
}

func (s *Store) checkOwner(ctx context.Context, agent string, id blob.ID) error {
	if err := checkID("agent", agent); err != nil {
		return err
	}
	l := s.lane(agent)
	defer s.release(l)
	ok, err := s.owns(ctx, l, id)
	if err == nil && !ok {
		err = fmt.Errorf("blob %s of agent %s: %w", id, agent, ErrNotFound)
	}
	return err
}

// owns reports whether a blob belongs to an agent. Results are cached and extended as
// the log grows.
func (s *Store) owns(ctx context.Context, l *agentLane, id blob.ID) (bool, error) {
	l.Value.reachMu.Lock()
	defer l.Value.reachMu.Unlock()
	now, err := s.load(ctx, l)
	if err != nil {
		return false, err
	}
	if l.Value.reach != nil {
		if ok, err := s.inLog(ctx, now.rec, l.Value.reached); err != nil {
			return false, err
		} else if !ok {
			l.Value.reach = nil // another history: drop the old results
		}
	}
	if l.Value.reach == nil {
		l.Value.reach, l.Value.reached = new(graph.Set), Offset{Tag: now.rec.Epoch}
		if err := s.extend(ctx, l, rootsOfRecord(now.rec)); err != nil {
			l.Value.reach = nil
			return false, err
		}
	}
	for !l.Value.reach.Has(id) && l.Value.reached.Seq < now.rec.Head.GetSeq() {
		events, _, err := s.read(ctx, l.Name, l.Value.reached)
		if err != nil {
			return false, err
		}
		if len(events) == 0 {
			return false, dataLoss(l.Name, "event %d of %d is missing", l.Value.reached.Seq+1, now.rec.Head.GetSeq())
		}
		var roots []graph.Root
		for _, e := range events {
			roots = append(roots, rootsOfEvent(e.rec)...)
		}
		if err := s.extend(ctx, l, roots); err != nil {
			l.Value.reach = nil
			return false, err
		}
		l.Value.reached = events[len(events)-1].at
	}
	return l.Value.reach.Has(id), nil
}

func (s *Store) extend(ctx context.Context, l *agentLane, roots []graph.Root) error {
	return graph.Walk(ctx, s.blobs, graph.Roots(roots...), &graph.Options{Seen: l.Value.reach}, func(graph.Node) error { return nil })
}

func rootsOfRecord(rec *stetv1.AgentRecord) []graph.Root {
	if id := stateOf(rec); !id.IsZero() {
		return []graph.Root{{Kind: graph.CloudState, ID: id}}
	}
	return nil
}

// rootsOfEvent returns the blobs that an event keeps. It ignores invalid ids, which
// this package never writes.
func rootsOfEvent(rec *stetv1.AgentEventRecord) []graph.Root {
	var roots []graph.Root
	if id, err := blob.IDFromBytes(rec.GetState()); err == nil {
		roots = append(roots, graph.Root{Kind: graph.CloudState, ID: id})
	}
	for _, raw := range rec.Blobs {
		if id, err := blob.IDFromBytes(raw); err == nil {
			roots = append(roots, graph.Root{Kind: graph.Bytes, ID: id})
		}
	}
	return roots
}
