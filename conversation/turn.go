package conversation

import (
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
)

// Turn is one turn of a conversation: a message of the user and the steps that
// followed, or a shell command and its output.
type Turn struct {
	// Structure is the turn's own blob, which names the others.
	Structure Item[*agentv1.ConversationTurnStructure]
	// Old is set instead of Structure for a turn in the older form.
	Old Item[*agentv1.AgentConversationTurnStructure]

	UserMessage Item[*agentv1.UserMessage]
	Steps       []Item[*agentv1.ConversationStep]

	ShellCommand Item[*agentv1.ShellCommand]
	ShellOutput  Item[*agentv1.ShellOutput]
}

// NewTurn makes an agent's turn.
func NewTurn(user *agentv1.UserMessage, steps ...*agentv1.ConversationStep) (Turn, error) {
	return agentTurn(&agentv1.AgentConversationTurn{UserMessage: user, Steps: steps})
}

func agentTurn(in *agentv1.AgentConversationTurn) (Turn, error) {
	var t Turn
	var err error
	s := &agentv1.AgentConversationTurnStructure{RequestId: in.RequestId}
	if in.UserMessage != nil {
		if t.UserMessage, err = NewItem(in.UserMessage); err != nil {
			return Turn{}, err
		}
		s.UserMessage = t.UserMessage.bytes32()
	}
	for _, step := range in.Steps {
		item, err := NewItem(step)
		if err != nil {
			return Turn{}, err
		}
		t.Steps = append(t.Steps, item)
		s.Steps = append(s.Steps, item.bytes32())
	}
	s.ProtoReflect().SetUnknown(in.ProtoReflect().GetUnknown())
	t.Structure, err = NewItem(&agentv1.ConversationTurnStructure{
		Turn: &agentv1.ConversationTurnStructure_AgentConversationTurn{AgentConversationTurn: s},
	})
	return t, err
}

// NewShellTurn makes the turn of a command that the user ran.
func NewShellTurn(command *agentv1.ShellCommand, output *agentv1.ShellOutput) (Turn, error) {
	var t Turn
	var err error
	if command != nil {
		if t.ShellCommand, err = NewItem(command); err != nil {
			return Turn{}, err
		}
	}
	if output != nil {
		if t.ShellOutput, err = NewItem(output); err != nil {
			return Turn{}, err
		}
	}
	t.Structure, err = NewItem(&agentv1.ConversationTurnStructure{
		Turn: &agentv1.ConversationTurnStructure_ShellConversationTurn{
			ShellConversationTurn: &agentv1.ShellConversationTurnStructure{
				ShellCommand: t.ShellCommand.bytes32(),
				ShellOutput:  t.ShellOutput.bytes32(),
			},
		},
	})
	return t, err
}

// parts calls fn for all parts of the turn.
func (t *Turn) parts(fn func(Content)) {
	fn(t.Structure.Content)
	fn(t.Old.Content)
	fn(t.UserMessage.Content)
	for _, s := range t.Steps {
		fn(s.Content)
	}
	fn(t.ShellCommand.Content)
	fn(t.ShellOutput.Content)
}
