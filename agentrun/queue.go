package agentrun

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"

	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
)

// Queue holds pending messages of the user, in order. It is in memory only. A message
// in a saved state counts as processed, so refilling a queue after a crash sends
// nothing twice. It is safe for concurrent use.
type Queue struct {
	mu       sync.Mutex // guards what follows
	waiting  []*agentv1.UserMessage
	taken    map[string]bool // all ids ever added
	finished map[string]bool // processed ids
}

// NewQueue returns an empty queue.
func NewQueue() *Queue {
	return &Queue{taken: make(map[string]bool), finished: make(map[string]bool)}
}

// Add appends a message and returns its id. A message without an id gets one; a
// message whose id was added before is not added again.
func (q *Queue) Add(msg *agentv1.UserMessage) (string, error) {
	if msg == nil {
		return "", invalid("add message: it is nil")
	}
	msg = proto.CloneOf(msg)
	if msg.MessageId == "" {
		msg.MessageId = newMessageID()
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.taken[msg.MessageId] && !q.finished[msg.MessageId] {
		q.taken[msg.MessageId] = true
		q.waiting = append(q.waiting, msg)
	}
	return msg.MessageId, nil
}

func newMessageID() string { return uuid.NewString() }

// Unprocessed returns the pending messages, oldest first.
func (q *Queue) Unprocessed() []*agentv1.UserMessage {
	q.mu.Lock()
	defer q.mu.Unlock()
	out := make([]*agentv1.UserMessage, len(q.waiting))
	for i, m := range q.waiting {
		out[i] = proto.CloneOf(m)
	}
	return out
}

// MarkProcessed removes a message from the queue. It reports whether the message was
// pending.
func (q *Queue) MarkProcessed(id string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.finished[id] = true
	before := len(q.waiting)
	q.waiting = slices.DeleteFunc(q.waiting, func(m *agentv1.UserMessage) bool { return m.MessageId == id })
	return len(q.waiting) < before
}

// markContained marks the messages that the handler's latest state contains.
func (q *Queue) markContained(ctx context.Context, h *Handler) error {
	var ids []string
	for _, m := range q.Unprocessed() {
		ids = append(ids, m.MessageId)
	}
	if len(ids) == 0 {
		return nil
	}
	has, err := h.Contains(ctx, ids...)
	if err != nil {
		return fmt.Errorf("mark processed messages: %w", err)
	}
	for i, id := range ids {
		if has[i] {
			q.MarkProcessed(id)
		}
	}
	return nil
}

// next returns the oldest pending message, or nil.
func (q *Queue) next() *agentv1.UserMessage {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		return nil
	}
	return proto.CloneOf(q.waiting[0])
}
