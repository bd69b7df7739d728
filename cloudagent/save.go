package cloudagent

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation/graph"
	"github.com/stet-dev/stet/conversation/wirelimit"
	aiserverv1 "github.com/stet-dev/stet/gen/aiserver/v1"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/kv"
)

// SaveOptions configure a save; nil gives the defaults.
type SaveOptions struct {
	// Offset is the place up to which the state includes the events; a new follower
	// gets the state and the events after that place. Without it the state includes
	// all events so far.
	Offset string
	// IfState, if set, is the required current state, else ErrConflict; the zero id
	// means none.
	IfState *blob.ID
	// IfHead, if set, is the required end of the log, else ErrConflict.
	IfHead *Offset
}

// Saved describes a saved state.
type Saved struct {
	State blob.ID
	// Offset is the place after the event.
	Offset Offset
}

// stateLimits limit states that are read back; they allow for the longest
// conversations.
var stateLimits = &wirelimit.Limits{Bytes: 64 << 20, Entries: 1 << 20, Memory: 512 << 20}

// SaveState makes a state the current one. One commit holds the state, the given
// blobs, the pointer, the offset and the event, and the next save of the agent's
// conversation if there is one. Every blob that the state refers to must be given or
// stored; otherwise nothing is saved and the error is a *kv.MissingBlobsError.
func (s *Store) SaveState(ctx context.Context, agent string, state *aiserverv1.CloudAgentState, blobs []*aiserverv1.PreFetchedBlob, opts *SaveOptions) (Saved, error) {
	if opts == nil {
		opts = &SaveOptions{}
	}
	if state == nil {
		return Saved{}, invalid("the state is missing")
	}
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(state)
	if err != nil {
		return Saved{}, invalid("state: %v", err)
	}
	// A state that readers reject would be lost once acknowledged.
	if err := wirelimit.Check(raw, state.ProtoReflect().Descriptor(), stateLimits); err != nil {
		return Saved{}, fmt.Errorf("%w: state: %w", ErrInvalid, err)
	}
	return s.saveState(ctx, agent, &save{raw: raw, id: blob.Sum(raw), state: proto.CloneOf(state), opts: opts}, blobs)
}

// SaveStateBlob is SaveState for a state that is already stored as a blob, because it
// does not fit into a message. The error is a *kv.MissingBlobsError if the blob is
// missing.
func (s *Store) SaveStateBlob(ctx context.Context, agent string, id blob.ID, blobs []*aiserverv1.PreFetchedBlob, opts *SaveOptions) (Saved, error) {
	if opts == nil {
		opts = &SaveOptions{}
	}
	raw, err := s.blobs.Get(ctx, id)
	if errors.Is(err, blob.ErrNotFound) {
		err = &kv.MissingBlobsError{IDs: []blob.ID{id}}
	}
	if err != nil {
		return Saved{}, fmt.Errorf("save state of agent %s: %w", agent, err)
	}
	state := new(aiserverv1.CloudAgentState)
	if err := wirelimit.Unmarshal(raw, state, stateLimits); err != nil {
		return Saved{}, fmt.Errorf("%w: state: %w", ErrInvalid, err)
	}
	return s.saveState(ctx, agent, &save{raw: raw, id: id, state: state, opts: opts}, blobs)
}

func (s *Store) saveState(ctx context.Context, agent string, p *save, blobs []*aiserverv1.PreFetchedBlob) (Saved, error) {
	given, err := verified(blobs)
	if err != nil {
		return Saved{}, err
	}
	p.s, p.agent, p.given = s, agent, given
	rec, err := s.update(ctx, agent, func(c *change) error { return p.apply(ctx, c) })
	if err != nil {
		return Saved{}, err
	}
	l := s.lane(agent)
	defer s.release(l)
	l.Value.keepState(p.id, p.state)
	return Saved{State: p.id, Offset: offsetOf(rec.Head)}, nil
}

// verified converts and verifies blobs from the wire.
func verified(blobs []*aiserverv1.PreFetchedBlob) ([]blob.Blob, error) {
	out := make([]blob.Blob, 0, len(blobs))
	for _, b := range blobs {
		id, err := blob.IDFromBytes(b.GetId())
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
		}
		if got := blob.Sum(b.GetValue()); got != id {
			return nil, &blob.MismatchError{Want: id, Got: got}
		}
		out = append(out, blob.Blob{ID: id, Data: b.GetValue()})
	}
	return out, nil
}

// save is a running SaveState.
type save struct {
	s     *Store
	agent string
	raw   []byte
	id    blob.ID
	state *aiserverv1.CloudAgentState
	given []blob.Blob
	opts  *SaveOptions

	since blob.ID   // base state of needs
	needs []blob.ID // blobs that the state needs and the previous one did not; nil until known
	props *stetv1.AgentProperties
}

func (p *save) apply(ctx context.Context, c *change) error {
	prev := stateOf(c.rec)
	if err := checkOpen(c.rec); err != nil {
		return fmt.Errorf("save state of agent %s: %w", p.agent, err)
	}
	if p.opts.IfState != nil && *p.opts.IfState != prev {
		return fmt.Errorf("save state of agent %s: %w: its state is %s", p.agent, ErrConflict, prev.Short())
	}
	if err := checkHead(c.rec, p.opts.IfHead); err != nil {
		return fmt.Errorf("save state of agent %s: %w", p.agent, err)
	}
	at, err := p.contains(ctx, c.rec)
	if err != nil {
		return err
	}
	if offsetOf(c.rec.StateAt).Seq == 0 { // not from our log, which would keep its blobs
		prev = blob.ID{}
	}
	linked, err := p.conversation(ctx, c.rec, prev)
	if err != nil {
		return fmt.Errorf("save state of agent %s: %w", p.agent, err)
	}
	if linked.alone {
		prev = blob.ID{}
	}
	if err := p.prepare(ctx, prev); err != nil {
		return fmt.Errorf("save state of agent %s: %w", p.agent, err)
	}
	c.also = linked.batch
	event := &stetv1.AgentEventRecord{TimeMs: p.s.nowMS(), Event: &stetv1.AgentEventRecord_State{State: p.id.Bytes()}}
	for _, b := range p.given {
		event.Blobs = append(event.Blobs, b.ID.Bytes())
	}
	if err := c.add(event); err != nil {
		return err
	}
	if at == nil {
		at = c.rec.Head
	}
	c.rec.State, c.rec.StateAt, c.rec.Properties, c.pointer = p.id.Bytes(), at, p.props, true
	c.refs = unique(append(append([]blob.ID{p.id}, p.needs...), ids(p.given)...))
	return nil
}

// contains returns the caller's place, which must be in the log, or nil.
func (p *save) contains(ctx context.Context, rec *stetv1.AgentRecord) (*stetv1.AgentPosition, error) {
	if p.opts.Offset == "" {
		return nil, nil
	}
	at, err := ParseOffset(p.opts.Offset)
	if err != nil {
		return nil, err
	}
	ok, err := p.s.inLog(ctx, rec, at)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fmt.Errorf("%w: %s is not in the log of agent %s", ErrInvalidOffset, at, p.agent)
	}
	return at.record(), nil
}

// prepare stores the blobs and finds what the state needs. Blobs are stored before
// the commit that names them: a crash in between leaves no dangling reference.
func (p *save) prepare(ctx context.Context, prev blob.ID) error {
	if p.needs != nil && p.since == prev {
		return nil
	}
	if err := p.s.blobs.Put(ctx, append(p.given[:len(p.given):len(p.given)], blob.Blob{ID: p.id, Data: p.raw, Like: prev})...); err != nil {
		return err
	}
	fresh, err := p.fresh(ctx, prev)
	if err != nil {
		return err
	}
	p.needs = []blob.ID{}
	var missing []blob.ID
	err = graph.Walk(ctx, p.s.blobs, graph.Roots(fresh...), nil, func(n graph.Node) error {
		switch {
		case errors.Is(n.Err, blob.ErrNotFound):
			missing = append(missing, n.ID)
		case n.Err != nil:
			return fmt.Errorf("%w: %w", ErrInvalid, n.Err)
		default:
			p.needs = append(p.needs, n.ID)
		}
		return nil
	})
	if err != nil {
		p.needs = nil
		return err
	}
	if len(missing) > 0 {
		p.needs = nil
		return &kv.MissingBlobsError{IDs: missing}
	}
	p.since = prev
	p.props, err = p.s.derive(ctx, p.state)
	return err
}

// fresh returns the blobs that the state refers to and the previous one did not. The
// log keeps every earlier state, so their blobs exist.
func (p *save) fresh(ctx context.Context, prev blob.ID) ([]graph.Root, error) {
	refs, err := graph.Refs(graph.CloudState, p.raw)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	var old graph.Set
	if !prev.IsZero() {
		data, err := p.s.blobs.Get(ctx, prev)
		if err != nil && !errors.Is(err, blob.ErrNotFound) && !errors.Is(err, blob.ErrCorrupt) {
			return nil, err
		}
		before, _ := graph.Refs(graph.CloudState, data) // ignore damage: nothing is known then
		for _, r := range before {
			old.Add(r.ID, r.Kind)
		}
	}
	var roots []graph.Root
	for _, r := range refs {
		if old.Add(r.ID, r.Kind) {
			roots = append(roots, graph.Root{Kind: r.Kind, ID: r.ID})
		}
	}
	return roots, nil
}

func ids(blobs []blob.Blob) []blob.ID {
	out := make([]blob.ID, len(blobs))
	for i, b := range blobs {
		out[i] = b.ID
	}
	return out
}

func unique(ids []blob.ID) []blob.ID {
	slices.SortFunc(ids, blob.ID.Compare)
	return slices.Compact(ids)
}

// State returns a state of an agent. It belongs to the caller.
func (s *Store) State(ctx context.Context, agent string, id blob.ID) (*aiserverv1.CloudAgentState, error) {
	state, err := s.sharedState(ctx, agent, id)
	if err != nil {
		return nil, err
	}
	return proto.CloneOf(state), nil
}

// sharedState returns a state that is shared with the cache and must not be changed.
func (s *Store) sharedState(ctx context.Context, agent string, id blob.ID) (*aiserverv1.CloudAgentState, error) {
	l := s.lane(agent)
	defer s.release(l)
	if state := l.Value.cachedState(id); state != nil {
		return state, nil
	}
	data, err := s.blobs.Get(ctx, id)
	if errors.Is(err, blob.ErrNotFound) || errors.Is(err, blob.ErrCorrupt) {
		return nil, fmt.Errorf("%w: state of agent %s: %w", ErrDataLoss, agent, err)
	}
	if err != nil {
		return nil, fmt.Errorf("read state of agent %s: %w", agent, err)
	}
	state := new(aiserverv1.CloudAgentState)
	if err := wirelimit.Unmarshal(data, state, stateLimits); err != nil {
		return nil, fmt.Errorf("%w: state of agent %s: %w", ErrDataLoss, agent, err)
	}
	l.Value.keepState(id, state)
	return state, nil
}
