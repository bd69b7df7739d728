package agentrun

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
)

// draft is a state that the server changes, and the blobs of the changes.
type draft struct {
	blobs blob.Store
	state *agentv1.ConversationStateStructure
	turn  *agentv1.ConversationTurnStructure // the last one, or nil
	user  *agentv1.UserMessage               // of the last turn
	steps []*agentv1.ConversationStep        // of the last turn
	fresh []blob.Blob                        // not stored yet
	dirty bool                               // changed since the last checkpoint
	// inherited is how many of the pending calls existed before this run. They may be
	// another program's.
	inherited int
}

// newDraft continues from a state. It reads the last turn only.
func newDraft(ctx context.Context, blobs blob.Store, state *agentv1.ConversationStateStructure) (*draft, error) {
	d := &draft{blobs: blobs, state: proto.CloneOf(state)}
	if d.state == nil {
		d.state = &agentv1.ConversationStateStructure{}
	}
	d.inherited = len(d.state.PendingToolCalls)
	n := len(d.state.Turns)
	if n == 0 {
		return d, nil
	}
	d.turn = new(agentv1.ConversationTurnStructure)
	if err := load(ctx, blobs, d.state.Turns[n-1], d.turn); err != nil {
		return nil, fmt.Errorf("load last turn: %w", err)
	}
	agent := d.turn.GetAgentConversationTurn()
	if len(agent.GetUserMessage()) > 0 {
		d.user = new(agentv1.UserMessage)
		if err := load(ctx, blobs, agent.GetUserMessage(), d.user); err != nil {
			return nil, fmt.Errorf("load last turn: %w", err)
		}
	}
	for _, id := range agent.GetSteps() {
		step := new(agentv1.ConversationStep)
		if err := load(ctx, blobs, id, step); err != nil {
			return nil, fmt.Errorf("load last turn: %w", err)
		}
		d.steps = append(d.steps, step)
	}
	return d, nil
}

// put queues bytes for the next checkpoint and returns the bytes of their id.
func (d *draft) put(data []byte) []byte {
	b := blob.New(data)
	d.fresh = append(d.fresh, b)
	d.dirty = true
	return b.ID.Bytes()
}

func (d *draft) putMessage(m proto.Message) ([]byte, error) {
	data, err := encode(m)
	if err != nil {
		return nil, err
	}
	return d.put(data), nil
}

// prompt adds a message to the model's prompt.
func (d *draft) prompt(role string, content ...any) error {
	data, err := json.Marshal(struct {
		Role    string `json:"role"`
		Content []any  `json:"content"`
	}{role, content})
	if err != nil {
		return fmt.Errorf("encode prompt message: %w", err)
	}
	d.state.RootPromptMessagesJson = append(d.state.RootPromptMessagesJson, d.put(data))
	return nil
}

type textPart struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

func textOf(text string) textPart { return textPart{"text", text} }

// beginTurn adds a turn that starts with a message.
func (d *draft) beginTurn(user *agentv1.UserMessage) error {
	turn, err := conversation.NewTurn(user)
	if err != nil {
		return err
	}
	if d.turn, err = turn.Structure.Decode(); err != nil {
		return err
	}
	d.put(turn.UserMessage.Bytes())
	d.state.Turns = append(d.state.Turns, d.put(turn.Structure.Bytes()))
	d.user, d.steps = proto.CloneOf(user), nil
	if mode := user.GetMode(); mode != agentv1.AgentMode_AGENT_MODE_UNSPECIFIED {
		d.state.Mode = mode.Enum()
	}
	return d.prompt("user", textOf(user.GetText()))
}

// timed records how long the last turn has taken so far. The first call records its
// start. Earlier turns without a timing get an empty one, so that both lists stay
// aligned.
func (d *draft) timed(now time.Time) {
	turns := len(d.state.Turns)
	if turns == 0 || len(d.state.TurnTimings) > turns {
		return
	}
	for len(d.state.TurnTimings) < turns {
		d.state.TurnTimings = append(d.state.TurnTimings, &agentv1.StepTiming{})
	}
	timing, at := d.state.TurnTimings[turns-1], uint64(max(0, now.UnixMilli()))
	if timing.TimestampMs == 0 {
		timing.TimestampMs = at
	}
	if at > timing.TimestampMs { // clocks may go back
		timing.DurationMs = max(timing.DurationMs, at-timing.TimestampMs)
	}
}

// readPath records that the agent has read a file.
func (d *draft) readPath(path string) {
	if path == "" || slices.Contains(d.state.ReadPaths, path) {
		return
	}
	d.state.ReadPaths = append(d.state.ReadPaths, path)
	d.dirty = true
}

// addShellTurn adds the turn of a command that the user ran.
func (d *draft) addShellTurn(command *agentv1.ShellCommand, output *agentv1.ShellOutput) error {
	turn, err := conversation.NewShellTurn(command, output)
	if err != nil {
		return err
	}
	if d.turn, err = turn.Structure.Decode(); err != nil {
		return err
	}
	d.put(turn.ShellCommand.Bytes())
	d.put(turn.ShellOutput.Bytes())
	d.state.Turns = append(d.state.Turns, d.put(turn.Structure.Bytes()))
	d.user, d.steps = nil, nil
	return nil
}

// addStep adds a step to the last turn, which must be an agent's.
func (d *draft) addStep(step *agentv1.ConversationStep) error {
	agent := d.turn.GetAgentConversationTurn()
	if agent == nil {
		return invalid("add step: the last turn is not an agent's")
	}
	id, err := d.putMessage(step)
	if err != nil {
		return err
	}
	agent.Steps = append(agent.Steps, id)
	turn, err := d.putMessage(d.turn)
	if err != nil {
		return err
	}
	d.state.Turns[len(d.state.Turns)-1] = turn
	d.steps = append(d.steps, proto.CloneOf(step))
	return nil
}

// setFile records what a file holds after an edit, and what it held before the first
// one; nil content means that the file does not or did not exist.
func (d *draft) setFile(path string, before, after *string) {
	f := &agentv1.FileStateStructure{}
	old, known := d.state.FileStatesV2[path]
	switch {
	case known: // with the fields of a newer release
		f = proto.CloneOf(old)
		f.Content = nil
	case before != nil:
		f.InitialContent = d.put([]byte(*before))
	}
	if after != nil {
		f.Content = d.put([]byte(*after))
	}
	if d.state.FileStatesV2 == nil {
		d.state.FileStatesV2 = make(map[string]*agentv1.FileStateStructure)
	}
	d.state.FileStatesV2[path] = f
	d.dirty = true
}

// setTodos replaces the to-do list, or merges items into it: one whose id is in the list
// takes its place there. It returns the whole list.
func (d *draft) setTodos(ctx context.Context, args *agentv1.UpdateTodosArgs) ([]*agentv1.TodoItem, error) {
	var list []*agentv1.TodoItem
	place := make(map[string]int)
	if args.GetMerge() {
		for _, id := range d.state.Todos {
			item := new(agentv1.TodoItem)
			if err := d.load(ctx, id, item); err != nil {
				return nil, fmt.Errorf("load to-do list: %w", err)
			}
			place[item.GetId()] = len(list)
			list = append(list, item)
		}
	}
	for _, item := range args.GetTodos() {
		at, known := place[item.GetId()]
		if known && item.GetId() != "" {
			list[at] = item
			continue
		}
		place[item.GetId()] = len(list)
		list = append(list, item)
	}
	ids := make([][]byte, len(list))
	for i, item := range list {
		var err error
		if ids[i], err = d.putMessage(item); err != nil {
			return nil, err
		}
	}
	d.state.Todos, d.dirty = ids, true
	return list, nil
}

// load reads a message that may not be stored yet.
func (d *draft) load(ctx context.Context, id []byte, into proto.Message) error {
	for _, b := range d.fresh {
		if bytes.Equal(b.ID.Bytes(), id) {
			return proto.Unmarshal(b.Data, into)
		}
	}
	return load(ctx, d.blobs, id, into)
}

func (d *draft) setPlan(text string) error {
	id, err := d.putMessage(&agentv1.ConversationPlan{Plan: text})
	d.state.Plan = id
	return err
}

// summarize replaces the prompt with a summary and archives the replaced messages.
func (d *draft) summarize(text string) error {
	replaced := d.state.RootPromptMessagesJson
	d.state.RootPromptMessagesJson = nil
	if err := d.prompt("user", textOf(text)); err != nil {
		return err
	}
	archive, err := d.putMessage(&agentv1.ConversationSummaryArchive{
		SummarizedMessages: replaced, Summary: text, SummaryMessage: d.state.RootPromptMessagesJson[0],
	})
	if err != nil {
		return err
	}
	d.state.SummaryArchives = append(d.state.SummaryArchives, archive)
	d.state.SelfSummaryCount++
	d.state.Summary, err = d.putMessage(&agentv1.ConversationSummary{Summary: text})
	return err
}

// store makes the blobs of the draft durable, wherever the stack keeps them.
func (d *draft) store(ctx context.Context) error {
	if len(d.fresh) > 0 {
		if err := d.blobs.Put(ctx, d.fresh...); err != nil {
			return fmt.Errorf("store state: %w", err)
		}
		d.fresh = nil
	}
	if err := d.blobs.Flush(ctx); err != nil {
		return fmt.Errorf("store state: %w", err)
	}
	return nil
}
