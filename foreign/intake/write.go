package intake

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/foreign"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/kv"
)

// create creates the conversation at its first turn.
func (p *pass) create(ctx context.Context, first foreign.Turn) error {
	if p.exists {
		return nil
	}
	turn := p.now
	p.now = cmp.Or(whole(p.session.Started), whole(first.Started), turn)
	defer func() { p.now = turn }()
	info := Info(p.session, first)
	conv, err := p.fork(ctx, info)
	if err == nil && conv == nil {
		conv, err = p.store.Create(ctx, info)
	}
	if err != nil {
		return err
	}
	p.conv, p.head = conv, conv.Head()
	p.exists, p.result.Created, p.path, p.title = true, true, info.Labels[LabelPath], info.Title
	return nil
}

// entitle gives an untitled conversation the title of a turn. It runs before the turn
// is saved, so that after a kill in between the next pass does it again. The
// conversation is reopened, since its handle expects the previous record.
func (p *pass) entitle(ctx context.Context, t foreign.Turn) error {
	if p.title != "" || p.shared[t.ID] {
		return nil
	}
	if p.title = titleOf(p.session, t); p.title == "" {
		return nil
	}
	if err := p.store.SetTitle(ctx, p.session.ID, p.title); err != nil {
		return err
	}
	p.conv = nil
	return p.rows.flush(ctx)
}

// Info returns the description of a new conversation for a session that begins with a
// turn.
func Info(s foreign.Session, first foreign.Turn) conversation.Info {
	labels := map[string]string{LabelSource: s.Agent, LabelPath: valid(s.Path)}
	if s.Parent != "" {
		labels[LabelParent], labels[LabelSubagent] = valid(s.Parent), "true"
	}
	return conversation.Info{
		ID: s.ID, Agent: s.Agent, Labels: labels, Workspace: valid(s.Workspace), Title: titleOf(s, first),
	}
}

// fork begins the conversation where its origin was forked, if the store has that and can
// read it. The record of a fork may hold the turns of its origin again.
func (p *pass) fork(ctx context.Context, info conversation.Info) (*conversation.Conversation, error) {
	conv, err := p.forkOf(ctx, info)
	if conv == nil {
		p.shared = nil // all turns are its own
	}
	if conversation.Damaged(err) {
		return nil, nil
	}
	return conv, err
}

func (p *pass) forkOf(ctx context.Context, info conversation.Info) (*conversation.Conversation, error) {
	from, after := p.session.ForkedFrom, p.session.ForkedAfter
	if from == "" || after == "" {
		return nil, nil
	}
	origin, err := p.store.Get(ctx, from)
	if errors.Is(err, conversation.ErrNotFound) || err == nil && origin.Labels[LabelSource] != p.session.Agent {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	at := uint64(0)
	err = p.share(ctx, from, func(save conversation.Save) uint64 {
		if save.MessageID == after && save.Kind == conversation.KindImport {
			at = max(at, save.Seq)
		}
		return at
	})
	if err != nil {
		return nil, err
	}
	if at != 0 {
		return p.store.Fork(ctx, from, at, info)
	}
	for save, err := range p.store.Inherited(ctx, from) { // it has no turns of its own
		if err != nil {
			return nil, err
		}
		if save.MessageID == after {
			return p.store.Fork(ctx, save.Conversation, save.Seq, info)
		}
	}
	return nil, nil
}

// share records which turns of an origin come again in the record of its fork: those
// that lead to a save. at is called with each save of the origin and returns the
// number of that save as far as it is known.
func (p *pass) share(ctx context.Context, origin string, at func(conversation.Save) uint64) error {
	saves := map[uint64]conversation.Save{}
	last := uint64(0)
	for save, err := range p.store.History(ctx, origin, nil) {
		if err != nil {
			return err
		}
		saves[save.Seq] = save
		last = at(save)
	}
	p.shared = map[string]bool{}
	for seq := last; seq != 0; seq = saves[seq].Parent {
		p.shared[saves[seq].MessageID] = true
	}
	for save, err := range p.store.Inherited(ctx, origin) { // it may be a fork, too
		if err != nil {
			return err
		}
		p.shared[save.MessageID] = true
	}
	return nil
}

// recall records the shared turns of a fork that an earlier pass began.
func (p *pass) recall(ctx context.Context) error {
	if p.origin == "" || p.shared != nil {
		return nil
	}
	err := p.share(ctx, p.origin, func(conversation.Save) uint64 { return p.forkedAt })
	if errors.Is(err, conversation.ErrNotFound) {
		return nil // deleted since
	}
	return err
}

// open opens the conversation for writing. If another process has saved since it was
// read, the pass starts over: the other one may have copied the same turns.
func (p *pass) open(ctx context.Context) error {
	if p.conv != nil {
		return nil
	}
	conv, err := p.store.Open(ctx, p.session.ID)
	if err != nil {
		return err
	}
	if conv.Head().Seq != p.head.Seq {
		return fmt.Errorf("%w: another process copies the session", kv.ErrConflict)
	}
	p.conv = conv
	return nil
}

// follow makes the state the one after the turn that a turn continues.
func (p *pass) follow(ctx context.Context, t foreign.Turn) error {
	switch {
	case t.Follows == foreign.Beginning:
		if p.head.Seq == 0 {
			return nil
		}
		return p.conv.SetStructure(ctx, nil)
	case t.Follows == "" || t.Follows == p.head.MessageID:
		return nil
	}
	seq, ok := p.known[t.Follows]
	if !ok || seq == p.head.Seq {
		return nil // what it follows is not in the record: it comes last
	}
	_, err := p.conv.Rewind(ctx, seq, nil)
	return err
}

// structure reads the current state as it is stored.
func (p *pass) structure(ctx context.Context) (*agentv1.ConversationStateStructure, error) {
	data, err := p.m.blobs.Get(ctx, p.head.Root)
	if errors.Is(err, blob.ErrNotFound) || errors.Is(err, blob.ErrCorrupt) {
		err = &conversation.HydrationError{Conversation: p.session.ID, Source: "root " + p.head.Root.Short(), Err: err}
	}
	if err != nil {
		return nil, err
	}
	state := &agentv1.ConversationStateStructure{}
	if err := proto.Unmarshal(data, state); err != nil {
		return nil, fmt.Errorf("%w: state %s: %w", kv.ErrCorrupt, p.head.Root.Short(), err)
	}
	return state, nil
}

// lastTurn returns the last turn of the current state.
func (p *pass) lastTurn(ctx context.Context) (blob.ID, error) {
	state, err := p.structure(ctx)
	if err != nil || len(state.Turns) == 0 {
		return blob.ID{}, err
	}
	return blob.IDFromBytes(state.Turns[len(state.Turns)-1])
}

// dropLast removes the last turn from the draft.
func (p *pass) dropLast(ctx context.Context) error {
	state, err := p.structure(ctx)
	if err != nil {
		return err
	}
	n := max(0, len(state.Turns)-1)
	state.Turns, state.TurnTimings = state.Turns[:n], state.TurnTimings[:min(n, len(state.TurnTimings))]
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(state)
	if err != nil {
		return err
	}
	return p.conv.SetStructure(ctx, raw)
}

// timingOf returns the time that a turn took, nil if the record does not say.
func timingOf(t foreign.Turn) *agentv1.StepTiming {
	if t.Started.IsZero() || t.Ended.Before(t.Started) {
		return nil
	}
	return &agentv1.StepTiming{
		TimestampMs: uint64(max(0, t.Started.UnixMilli())),
		DurationMs:  uint64(t.Ended.Sub(t.Started) / time.Millisecond),
	}
}
