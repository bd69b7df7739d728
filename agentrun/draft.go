package agentrun

import (
	"context"
	"encoding/json"
	"fmt"

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
}

// newDraft continues from a state. It reads the last turn only.
func newDraft(ctx context.Context, blobs blob.Store, state *agentv1.ConversationStateStructure) (*draft, error) {
	d := &draft{blobs: blobs, state: proto.CloneOf(state)}
	if d.state == nil {
		d.state = &agentv1.ConversationStateStructure{}
	}
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
	return d.prompt("user", textOf(user.GetText()))
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
	case known:
		f.InitialContent = old.GetInitialContent()
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

func (d *draft) setTodos(args *agentv1.UpdateTodosArgs) error {
	if !args.GetMerge() {
		d.state.Todos = nil
	}
	for _, item := range args.GetTodos() {
		id, err := d.putMessage(item)
		if err != nil {
			return err
		}
		d.state.Todos = append(d.state.Todos, id)
	}
	d.dirty = true
	return nil
}

func (d *draft) setPlan(text string) error {
	id, err := d.putMessage(&agentv1.ConversationPlan{Plan: text})
	d.state.Plan = id
	return err
}

// summarize replaces the prompt by a summary and archives the replaced messages.
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
