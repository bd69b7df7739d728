package cursor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/stet-dev/stet/blob"
)

// Role is the speaker of a message.
type Role int

// Roles, with the numbers of the stored form.
const (
	RoleUnknown   Role = 0
	RoleUser      Role = 1
	RoleAssistant Role = 2
)

// String returns the name of the role.
func (r Role) String() string {
	switch r {
	case RoleUser:
		return "user"
	case RoleAssistant:
		return "assistant"
	}
	return "unknown"
}

func roleOf(d Document) Role {
	if r := Role(d.Integer("type")); r == RoleUser || r == RoleAssistant {
		return r
	}
	return RoleUnknown
}

// Message is one message of a conversation.
type Message struct {
	ID      string
	Role    Role
	Text    string
	Created time.Time
	// Thinking is the reasoning that was shown, or "".
	Thinking string
	// Tool is the tool call of the message, or nil.
	Tool *ToolUse
	// Before and After are the ids of the workspace checkpoints on either side, or "".
	Before, After string
	// Head is the pointer to the state at the message, or zero.
	Head blob.ID
	// State is the state inside the row, or nil.
	State *State
	// Orphan means that the row exists but is not in the conversation's order.
	Orphan bool
	// Problem is why the message, or a part of it, could not be read; the rest is
	// set.
	Problem error
	// Raw is the stored row.
	Raw json.RawMessage
}

// ToolUse is a tool call. Input and Output are usually JSON, but some releases stored
// other text.
type ToolUse struct {
	Name, Status, CallID string
	Input, Output        string
}

// Failed reports whether the call ended without a usable output.
func (t *ToolUse) Failed() bool {
	return t.Status == "error" || t.Status == "cancelled" || t.Status == "rejected"
}

// Messages yields the messages of a conversation in order, and then the rows that are
// not in the order. Conversations of agent stores have their messages in their State
// instead.
func (s *Store) Messages(ctx context.Context, conv *Conversation) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		seen := make(map[string]bool, len(conv.Order))
		for _, ref := range conv.Order {
			seen[ref.ID] = true
			m, err := s.message(ctx, conv, ref)
			if !yield(m, err) || err != nil {
				return
			}
		}
		if s.kind == KindEditor {
			s.orphans(ctx, conv, seen, yield)
		}
	}
}

func (s *Store) message(ctx context.Context, conv *Conversation, ref MessageRef) (Message, error) {
	var m Message
	if d := conv.inline[ref.ID]; d != nil {
		m = decodeMessage(ref.ID, d)
		m.Raw = encode(d)
	} else {
		v, err := s.value(ctx, MessagePrefix+conv.ID+":"+ref.ID)
		switch {
		case err == nil:
			m = readMessage(ref.ID, v)
		case OfRow(err):
			m = Message{ID: ref.ID, Problem: fmt.Errorf("read message %s: %w", ref.ID, err)}
		default:
			return Message{}, err
		}
	}
	if m.Role == RoleUnknown {
		m.Role = ref.Role
	}
	return m, s.fillHead(ctx, conv.ID, &m)
}

func (s *Store) orphans(ctx context.Context, conv *Conversation, seen map[string]bool, yield func(Message, error) bool) {
	prefix := MessagePrefix + conv.ID + ":"
	for row, err := range s.scan(ctx, prefixRange(prefix), scanKeys) {
		if err != nil {
			yield(Message{}, err)
			return
		}
		id := row.key[len(prefix):]
		if seen[id] {
			continue
		}
		m, err := s.message(ctx, conv, MessageRef{ID: id})
		if err != nil {
			yield(Message{}, err)
			return
		}
		m.Orphan = true
		if errors.Is(m.Problem, ErrNotFound) && m.Raw == nil {
			continue // a tombstone is not a message
		}
		if !yield(m, nil) {
			return
		}
	}
}

// fillHead looks up the state pointer of a message.
func (s *Store) fillHead(ctx context.Context, conversation string, m *Message) error {
	id, err := s.MessageHead(ctx, conversation, m.ID)
	if _, lost := err.(*DataLossError); lost || err != nil && OfRow(err) {
		m.Problem = joinProblem(m.Problem, err)
		return nil
	}
	m.Head = id
	return err
}

// readMessage decodes a message row.
func readMessage(id string, v Value) Message {
	if v.Absent() {
		return Message{ID: id, Problem: fmt.Errorf("%w: message %s", ErrNotFound, id)}
	}
	d, err := ParseDocument(v.Data)
	if err != nil {
		return Message{ID: id, Raw: v.Data, Problem: fmt.Errorf("read message %s: %w", id, err)}
	}
	m := decodeMessage(id, d)
	m.Raw = v.Data
	return m
}

func decodeMessage(id string, d Document) Message {
	m := Message{
		ID: id, Role: roleOf(d), Text: d.Text("text"), Created: d.time("createdAt"),
		Thinking: thinkingOf(d), Tool: toolOf(d),
		Before: d.Text("checkpointId"), After: d.Text("afterCheckpointId"),
	}
	state, err := parseState(d["conversationState"])
	if err != nil {
		m.Problem = &DataLossError{Source: "conversationState of message " + id, Err: err}
	}
	if state != nil && len(state.Data) > 0 {
		m.State = state
	}
	return m
}

func thinkingOf(d Document) string {
	if t := d.Text("thinking"); t != "" {
		return t
	}
	return d.Object("thinking").Text("text")
}

func toolOf(d Document) *ToolUse {
	t := d.Object("toolFormerData")
	if t == nil {
		return nil
	}
	use := &ToolUse{
		Name: t.Text("name"), Status: t.Text("status"), CallID: t.Text("toolCallId"),
		Input: t.anyText("params"), Output: t.anyText("result"),
	}
	if use.Input == "" {
		use.Input = t.anyText("rawArgs")
	}
	return use
}
