package graph

// Kind is the type of a blob's content.
type Kind uint8

// The kinds. Those before State refer to nothing.
const (
	// Bytes is anything: a file, an image, an opaque record.
	Bytes Kind = iota
	// Text is UTF-8.
	Text
	// Prompt is a message as JSON.
	Prompt
	// Todo is a TodoItem.
	Todo
	// Summary is a ConversationSummary.
	Summary
	// Plan is a ConversationPlan.
	Plan
	// FileState is a FileState with its texts inline.
	FileState
	// ShellCommand is a ShellCommand.
	ShellCommand
	// ShellOutput is a ShellOutput.
	ShellOutput

	// State is a ConversationStateStructure: a root.
	State
	// Turn is a ConversationTurnStructure.
	Turn
	// AgentTurn is an AgentConversationTurnStructure, the older form of a turn.
	AgentTurn
	// UserMessage is a UserMessage.
	UserMessage
	// Step is a ConversationStep.
	Step
	// Archive is a ConversationSummaryArchive.
	Archive
	// CloudState is a CloudAgentState.
	CloudState
	// Action is a ConversationAction.
	Action
	// Invocation is an InvocationContext.
	Invocation

	kinds // number of kinds
)

var kindNames = [kinds]string{
	"bytes", "text", "prompt", "todo", "summary", "plan", "file state", "shell command", "shell output",
	"state", "turn", "agent turn", "user message", "step", "archive", "cloud state", "action", "invocation",
}

// messages is the message type of each kind.
var messages = [kinds]string{
	Todo:         "agent.v1.TodoItem",
	Summary:      "agent.v1.ConversationSummary",
	Plan:         "agent.v1.ConversationPlan",
	FileState:    "agent.v1.FileState",
	ShellCommand: "agent.v1.ShellCommand",
	ShellOutput:  "agent.v1.ShellOutput",
	State:        "agent.v1.ConversationStateStructure",
	Turn:         "agent.v1.ConversationTurnStructure",
	AgentTurn:    "agent.v1.AgentConversationTurnStructure",
	UserMessage:  "agent.v1.UserMessage",
	Step:         "agent.v1.ConversationStep",
	Archive:      "agent.v1.ConversationSummaryArchive",
	CloudState:   "aiserver.v1.CloudAgentState",
	Action:       "agent.v1.ConversationAction",
	Invocation:   "agent.v1.InvocationContext",
}

func (k Kind) String() string {
	if k < kinds {
		return kindNames[k]
	}
	return "unknown kind"
}

// Message returns the full name of the message that blobs of this kind hold, or
// "" for bytes and text.
func (k Kind) Message() string {
	if k < kinds {
		return messages[k]
	}
	return ""
}

// Leaf reports whether blobs of this kind refer to no others.
func (k Kind) Leaf() bool { return k < State || k >= kinds }
