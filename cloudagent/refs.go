package cloudagent

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation/graph"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
)

// updateRefs finds the blobs that updates name and that are stored, records them in
// the events, so that a collector keeps them, and returns them all. A blob that is
// not stored yet comes with a later state, which keeps it.
func (s *Store) updateRefs(ctx context.Context, updates []*agentv1.InteractionUpdate, events []*stetv1.AgentEventRecord) ([]blob.ID, error) {
	var ids []blob.ID
	var of []int // the update that names ids[i]
	for i, u := range updates {
		events[i].Blobs = nil
		named, err := namedBy(u)
		if err != nil {
			return nil, err
		}
		for _, id := range named {
			ids, of = append(ids, id), append(of, i)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	have, err := s.blobs.Has(ctx, ids...)
	if err != nil {
		return nil, fmt.Errorf("look for the blobs of updates: %w", err)
	}
	stored := ids[:0]
	for i, ok := range have {
		if ok {
			events[of[i]].Blobs = append(events[of[i]].Blobs, ids[i].Bytes())
			stored = append(stored, ids[i])
		}
	}
	return stored, nil
}

// namedBy returns the blobs that an update names: those of a message or a tool
// call.
func namedBy(u *agentv1.InteractionUpdate) ([]blob.ID, error) {
	kind, m := graph.Step, proto.Message(nil)
	step := func(call *agentv1.ToolCall) proto.Message {
		return &agentv1.ConversationStep{Message: &agentv1.ConversationStep_ToolCall{ToolCall: call}}
	}
	switch v := u.GetMessage().(type) {
	case *agentv1.InteractionUpdate_UserMessageAppended:
		kind, m = graph.UserMessage, v.UserMessageAppended.GetUserMessage()
	case *agentv1.InteractionUpdate_ToolCallStarted:
		m = step(v.ToolCallStarted.GetToolCall())
	case *agentv1.InteractionUpdate_ToolCallCompleted:
		m = step(v.ToolCallCompleted.GetToolCall())
	default:
		return nil, nil
	}
	raw, err := proto.Marshal(m)
	if err != nil {
		return nil, invalid("update: %v", err)
	}
	refs, err := graph.Refs(kind, raw)
	if err != nil {
		return nil, fmt.Errorf("%w: update: %w", ErrInvalid, err)
	}
	ids := make([]blob.ID, len(refs))
	for i, r := range refs {
		ids[i] = r.ID
	}
	return ids, nil
}
