package conversation

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation/wirelimit"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
)

// stage keeps a content for the next save. Content without loaded bytes is assumed to
// be in the store; the save checks that.
func (c *Conversation) stage(content Content) {
	if !content.loaded {
		return
	}
	if _, ok := c.staged[content.id]; !ok {
		c.staged[content.id] = blob.Blob{ID: content.id, Data: content.data}
	}
}

// AppendPrompt adds messages, as JSON, to the model's prompt.
func (c *Conversation) AppendPrompt(ctx context.Context, messages ...[]byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.edit(ctx); err != nil {
		return err
	}
	for _, m := range messages {
		content := NewContent(m)
		c.stage(content)
		c.draft.add(fieldPrompt, bytesRecord(fieldPrompt, content.bytes32()))
	}
	return nil
}

// AppendTurn adds a turn. AppendStep adds to it afterwards.
func (c *Conversation) AppendTurn(ctx context.Context, t Turn) error {
	if t.Structure.IsNone() {
		return invalid("append turn: the structure is missing")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.edit(ctx); err != nil {
		return err
	}
	c.sealTurn()
	c.turn = nil
	t.parts(c.stage)
	c.draft.add(fieldTurns, bytesRecord(fieldTurns, t.Structure.bytes32()))
	return nil
}

// AppendStep adds steps to the last turn, which must be an agent's. Only that turn is
// rewritten.
func (c *Conversation) AppendStep(ctx context.Context, steps ...*agentv1.ConversationStep) error {
	items := make([]Item[*agentv1.ConversationStep], len(steps))
	for i, s := range steps {
		var err error
		if items[i], err = NewItem(s); err != nil {
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.edit(ctx); err != nil {
		return err
	}
	if err := c.openTurn(ctx); err != nil {
		return fmt.Errorf("append step: %w", err)
	}
	for _, item := range items {
		c.stage(item.Content)
		step := bytesRecord(2, item.bytes32())      // AgentConversationTurnStructure.steps
		c.turn.builder.Append(bytesRecord(1, step)) // ConversationTurnStructure.agent_conversation_turn
		c.turn.dirty = true
	}
	return nil
}

// openTurn loads the last turn, which must be an agent's.
func (c *Conversation) openTurn(ctx context.Context) error {
	if c.turn != nil {
		return nil
	}
	held := c.draft.held[fieldTurns]
	if held == nil {
		return invalid("there is no turn")
	}
	_, _, value, _, err := wirelimit.Next(held)
	if err != nil {
		return invalid("last turn: %v", err)
	}
	id, err := blob.IDFromBytes(value)
	if err != nil {
		return c.store.lost(c.id, "turns", err)
	}
	turn := &openTurn{builder: blob.NewBuilder()}
	data := []byte(nil)
	if st, ok := c.staged[id]; ok {
		turn.blob, err = blob.Whole(ctx, c.store.blobs, st)
		data = turn.blob.Data
		turn.builder.Append(data)
	} else {
		data, err = c.store.blobs.Get(ctx, id)
		turn.builder = blob.ResumeBuilder(id, data)
	}
	structure := new(agentv1.ConversationTurnStructure)
	if err == nil {
		err = wirelimit.Unmarshal(data, structure, partLimits)
	}
	if err != nil {
		return c.store.lost(c.id, "turns", err)
	}
	if structure.GetAgentConversationTurn() == nil {
		return invalid("the last turn is not an agent's turn")
	}
	c.turn = turn
	return nil
}

// sealTurn makes a blob of the last turn if it has grown. Its previous form is not
// stored, unless an earlier save did so.
func (c *Conversation) sealTurn() {
	if c.turn == nil || !c.turn.dirty {
		return
	}
	c.turn.blob, c.turn.dirty = c.turn.builder.Blob(nil), false
	c.staged[c.turn.blob.ID] = c.turn.blob
	c.draft.hold(fieldTurns, bytesRecord(fieldTurns, c.turn.blob.ID.Bytes()))
}

// SetTiming sets the start and duration of the last turn. Earlier turns without a
// timing get an empty one, so that both lists stay aligned.
func (c *Conversation) SetTiming(ctx context.Context, timing *agentv1.StepTiming) error {
	value, err := marshal(timing)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.edit(ctx); err != nil {
		return err
	}
	turns := c.draft.counts[fieldTurns]
	if turns == 0 {
		return invalid("set timing: there is no turn")
	}
	for c.draft.counts[fieldTimings] < turns {
		c.draft.add(fieldTimings, bytesRecord(fieldTimings, nil))
	}
	c.draft.hold(fieldTimings, bytesRecord(fieldTimings, value))
	return nil
}

// SetTodos replaces the todo list.
func (c *Conversation) SetTodos(ctx context.Context, todos ...*agentv1.TodoItem) error {
	return setList(ctx, c, fieldTodos, todos...)
}

// SetSummary replaces the summary; nil removes it.
func (c *Conversation) SetSummary(ctx context.Context, summary *agentv1.ConversationSummary) error {
	if summary == nil {
		return setList[*agentv1.ConversationSummary](ctx, c, fieldSummary)
	}
	return setList(ctx, c, fieldSummary, summary)
}

// SetPlan replaces the plan; nil removes it.
func (c *Conversation) SetPlan(ctx context.Context, plan *agentv1.ConversationPlan) error {
	if plan == nil {
		return setList[*agentv1.ConversationPlan](ctx, c, fieldPlan)
	}
	return setList(ctx, c, fieldPlan, plan)
}

// setList sets messages as the records of a field in the tail.
func setList[M proto.Message](ctx context.Context, c *Conversation, num protowire.Number, messages ...M) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.edit(ctx); err != nil {
		return err
	}
	var raw []byte
	for _, m := range messages {
		item, err := NewItem(m)
		if err != nil {
			return err
		}
		c.stage(item.Content)
		raw = append(raw, bytesRecord(num, item.bytes32())...)
	}
	c.draft.set(num, raw)
	return nil
}

// AppendArchive adds the messages that a summary replaced. The messages it names must
// be stored or part of the draft.
func (c *Conversation) AppendArchive(ctx context.Context, archive *agentv1.ConversationSummaryArchive) error {
	item, err := NewItem(archive)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.edit(ctx); err != nil {
		return err
	}
	c.stage(item.Content)
	c.draft.add(fieldArchives, bytesRecord(fieldArchives, item.bytes32()))
	return nil
}
