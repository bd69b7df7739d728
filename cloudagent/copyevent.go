package cloudagent

import (
	"context"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation/graph"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	aiserverv1 "github.com/stet-dev/stet/gen/aiserver/v1"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
)

// add adds an event of the origin to a change of the copy. It skips kinds that the
// log has no place for.
func (c *copier) add(ctx context.Context, ch *change, e Event) error {
	if e.Update != nil {
		return c.addUpdate(ctx, ch, e.Update)
	}
	if !e.StateID.IsZero() && !slices.Contains(e.Missing, e.StateID) {
		if err := c.addState(ctx, ch, e); err != nil {
			return err
		}
	}
	if e.Status == 0 || e.Status == ch.rec.Status {
		return nil
	}
	ch.rec.Status, ch.pointer = e.Status, true
	return ch.add(&stetv1.AgentEventRecord{TimeMs: c.s.nowMS(), Event: &stetv1.AgentEventRecord_Status{Status: e.Status}})
}

func (c *copier) addUpdate(ctx context.Context, ch *change, u *agentv1.InteractionUpdate) error {
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(u)
	if err != nil {
		return invalid("update: %v", err)
	}
	if len(raw) > maxEvent {
		return fmt.Errorf("%w: it has %d bytes; the limit is %d", ErrTooLarge, len(raw), maxEvent)
	}
	event := &stetv1.AgentEventRecord{TimeMs: c.s.nowMS(), Event: &stetv1.AgentEventRecord_Update{Update: raw}}
	refs, err := c.s.updateRefs(ctx, []*agentv1.InteractionUpdate{u}, []*stetv1.AgentEventRecord{event})
	if err != nil {
		return err
	}
	ch.refs = append(ch.refs, refs...)
	return ch.add(event)
}

// addState makes a state the current one. It includes the events before it.
func (c *copier) addState(ctx context.Context, ch *change, e Event) error {
	if e.Initial && e.StateID == stateOf(ch.rec) && offsetOf(ch.rec.StateAt) == offsetOf(ch.rec.Head) {
		return nil // the copy ends with it already
	}
	raw, err := c.s.blobs.Get(ctx, e.StateID)
	if err != nil {
		return fmt.Errorf("read state %s: %w", e.StateID, err)
	}
	state, err := c.s.sharedState(ctx, c.agent, e.StateID)
	if err != nil {
		return err
	}
	p := &save{s: c.s, agent: c.agent, raw: raw, id: e.StateID, state: state}
	refs, err := c.present(ctx, p, stateOf(ch.rec))
	if err != nil {
		return err
	}
	props, err := c.s.derive(ctx, state)
	if err != nil { // without the texts that are missing
		if props, err = c.s.derive(ctx, withoutTexts(state)); err != nil {
			return err
		}
	}
	if err := ch.add(&stetv1.AgentEventRecord{TimeMs: c.s.nowMS(), Event: &stetv1.AgentEventRecord_State{State: e.StateID.Bytes()}}); err != nil {
		return err
	}
	ch.rec.State, ch.rec.StateAt, ch.rec.Properties, ch.pointer = e.StateID.Bytes(), ch.rec.Head, props, true
	ch.refs = append(ch.refs, refs...)
	return nil
}

func withoutTexts(state *aiserverv1.CloudAgentState) *aiserverv1.CloudAgentState {
	state = proto.CloneOf(state)
	state.PrUrl, state.AgentName, state.BranchName = nil, nil, nil
	return state
}

// present returns the blobs that a state needs and its predecessor did not, as far as
// they are stored here.
func (c *copier) present(ctx context.Context, p *save, prev blob.ID) ([]blob.ID, error) {
	fresh, err := p.fresh(ctx, prev)
	if err != nil {
		return nil, err
	}
	needs := []blob.ID{p.id}
	err = graph.Walk(ctx, c.s.blobs, graph.Roots(fresh...), nil, func(n graph.Node) error {
		switch {
		case unreadable(n.Err):
		case n.Err != nil:
			return fmt.Errorf("%w: %w", ErrInvalid, n.Err)
		default:
			needs = append(needs, n.ID)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	needs = unique(needs)
	has, err := c.s.blobs.Has(ctx, needs...)
	if err != nil {
		return nil, err
	}
	here := needs[:0]
	for i, id := range needs {
		if has[i] {
			here = append(here, id)
		}
	}
	return here, nil
}
