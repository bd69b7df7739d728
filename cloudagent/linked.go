package cloudagent

import (
	"context"
	"errors"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/kv"
)

// linked is what saving a state does to the conversation of its agent.
type linked struct {
	batch kv.Batch
	// alone means that the conversation does not continue the agent's last state: the
	// commit must name every blob of the new one, because the agent with its log may be
	// deleted before a collector sees the conversation.
	alone bool
}

// conversation plans the next save of the conversation that the agent works on. An
// agent may work on none, or on one that was deleted: its own state is saved anyway.
func (p *save) conversation(ctx context.Context, rec *stetv1.AgentRecord, prev blob.ID) (linked, error) {
	if p.state.ConversationState == nil {
		return linked{}, nil
	}
	next, err := p.s.conversations.Continue(ctx, rec.Conversation, p.state.ConversationState, p.agent)
	if errors.Is(err, conversation.ErrNotFound) || err == nil && next.Save.Seq == 0 {
		return linked{}, nil
	}
	if err != nil {
		return linked{}, err
	}
	if err := p.s.blobs.Put(ctx, next.Root); err != nil {
		return linked{}, err
	}
	return linked{batch: next.Batch, alone: p.rootOf(ctx, prev) != next.Before}, nil
}

// rootOf returns the root that an earlier state of the agent became, zero if there is
// none or it cannot be read.
func (p *save) rootOf(ctx context.Context, state blob.ID) blob.ID {
	if state.IsZero() {
		return blob.ID{}
	}
	before, err := p.s.sharedState(ctx, p.agent, state)
	if err != nil || before.ConversationState == nil {
		return blob.ID{}
	}
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(before.ConversationState)
	if err != nil {
		return blob.ID{}
	}
	return blob.Sum(raw)
}
