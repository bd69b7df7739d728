package conversation

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation/graph"
	"github.com/stet-dev/stet/conversation/wirelimit"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
)

// stage keeps a content for the next save. One whose bytes were not loaded is
// taken to be in the store; the save will see.
func (c *Conversation) stage(kind graph.Kind, content Content) {
	if !content.loaded {
		return
	}
	if _, ok := c.staged[content.id]; !ok {
		c.staged[content.id] = staged{blob: blob.Blob{ID: content.id, Data: content.data}, kind: kind}
	}
}

// AppendPrompt adds messages, as JSON, to those that the model is given.
func (c *Conversation) AppendPrompt(ctx context.Context, messages ...[]byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.edit(ctx); err != nil {
		return err
	}
	for _, m := range messages {
		content := NewContent(m)
		c.stage(graph.Prompt, content)
		c.draft.add(fieldPrompt, bytesRecord(fieldPrompt, content.bytes32()))
	}
	return nil
}

// AppendTurn adds a turn. It becomes the one to which AppendStep adds.
func (c *Conversation) AppendTurn(ctx context.Context, t Turn) error {
	if t.Structure.IsNone() {
		return invalid("append turn: it has no structure")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.edit(ctx); err != nil {
		return err
	}
	if err := c.sealTurn(); err != nil {
		return err
	}
	c.turn = nil
	t.parts(func(p part) { c.stage(p.kind, p.content) })
	c.draft.add(fieldTurns, bytesRecord(fieldTurns, t.Structure.bytes32()))
	return nil
}

// AppendStep adds steps to the last turn, which must be an agent's. Only that
// turn is written anew.
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
	agent := c.turn.structure.GetAgentConversationTurn()
	if agent == nil {
		return invalid("append step: the last turn is no agent's turn")
	}
	for _, item := range items {
		c.stage(graph.Step, item.Content)
		agent.Steps = append(agent.Steps, item.bytes32())
	}
	c.turn.dirty = c.turn.dirty || len(items) > 0
	return nil
}

// openTurn loads the last turn.
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
		return err
	}
	data := c.staged[id].blob.Data
	if _, ok := c.staged[id]; !ok {
		if data, err = c.store.blobs.Get(ctx, id); err != nil {
			return c.store.lost(c.id, "turns", err)
		}
	}
	structure := new(agentv1.ConversationTurnStructure)
	if err := wirelimit.Unmarshal(data, structure, partLimits); err != nil {
		return c.store.lost(c.id, "turns", err)
	}
	c.turn = &openTurn{id: id, structure: structure}
	return nil
}

// sealTurn encodes the last turn if it has grown. The form it had before is not
// stored, unless an earlier save did so.
func (c *Conversation) sealTurn() error {
	if c.turn == nil || !c.turn.dirty {
		return nil
	}
	item, err := NewItem(c.turn.structure)
	if err != nil {
		return err
	}
	delete(c.staged, c.turn.id)
	c.stage(graph.Turn, item.Content)
	c.draft.hold(fieldTurns, bytesRecord(fieldTurns, item.bytes32()))
	c.turn.id, c.turn.dirty = item.id, false
	return nil
}

// SetTiming says when the last turn began and how long it took. Turns without a
// timing before it get an empty one, so that both lists stay aligned.
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

// SetTodos replaces the to-do list.
func (c *Conversation) SetTodos(ctx context.Context, todos ...*agentv1.TodoItem) error {
	return setList(ctx, c, graph.Todo, todos...)
}

// SetSummary replaces the summary; nil removes it.
func (c *Conversation) SetSummary(ctx context.Context, summary *agentv1.ConversationSummary) error {
	if summary == nil {
		return setList[*agentv1.ConversationSummary](ctx, c, graph.Summary)
	}
	return setList(ctx, c, graph.Summary, summary)
}

// SetPlan replaces the plan; nil removes it.
func (c *Conversation) SetPlan(ctx context.Context, plan *agentv1.ConversationPlan) error {
	if plan == nil {
		return setList[*agentv1.ConversationPlan](ctx, c, graph.Plan)
	}
	return setList(ctx, c, graph.Plan, plan)
}

// setList replaces the records of a field in the tail by messages of a kind.
func setList[M proto.Message](ctx context.Context, c *Conversation, kind graph.Kind, messages ...M) error {
	num := fieldTodos
	switch kind {
	case graph.Summary:
		num = fieldSummary
	case graph.Plan:
		num = fieldPlan
	}
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
		c.stage(kind, item.Content)
		raw = append(raw, bytesRecord(num, item.bytes32())...)
	}
	c.draft.set(num, raw)
	return nil
}

// AppendArchive adds what a summary replaced. The messages it names must be
// stored or part of the draft.
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
	c.stage(graph.Archive, item.Content)
	c.draft.add(fieldArchives, bytesRecord(fieldArchives, item.bytes32()))
	return nil
}
