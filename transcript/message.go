package transcript

import "time"

// Role is the author of a message.
type Role string

// The roles.
const (
	User      Role = "user"
	Assistant Role = "assistant"
	// System marks messages of neither: summaries and errors.
	System Role = "system"
)

// Kind is the kind of a message.
type Kind string

// The kinds.
const (
	Text     Kind = "text"
	Thinking Kind = "thinking"
	ToolCall Kind = "tool_call"
	// Shell is a command that the user ran; Message.Tool has its output.
	Shell   Kind = "shell"
	Summary Kind = "summary"
	// Failure replaces something that cannot be read.
	Failure Kind = "error"
)

// Message is one entry of a transcript.
type Message struct {
	// ID is the message's or tool call's own id or, if it has none, is derived from
	// its place: "turn-12" or, for the third step, "turn-12-3".
	ID string `json:"id"`
	// Turn numbers the turns from 1; 0 means none.
	Turn int  `json:"turn"`
	Role Role `json:"role"`
	Kind Kind `json:"kind"`
	// Text is the text of the message, usually Markdown, or the command of a Shell
	// message.
	Text string `json:"text,omitempty"`
	// Tool is set for tool calls and shell commands.
	Tool *Tool `json:"tool,omitempty"`
	// Time is zero if unknown.
	Time time.Time `json:"time,omitzero"`
	// Subagent is the id of the subagent that the message belongs to, empty for
	// the conversation itself.
	Subagent string `json:"subagent,omitempty"`
	// Simulated means that a program wrote the message on the user's behalf.
	Simulated bool `json:"simulated,omitempty"`
}

// Status is how a tool call ended.
type Status string

// The states of a tool call.
const (
	// Pending calls have no result.
	Pending   Status = "pending"
	Running   Status = "running"
	Succeeded Status = "success"
	Failed    Status = "error"
	Rejected  Status = "rejected"
	TimedOut  Status = "timeout"
)

// Tool is a call of a tool.
type Tool struct {
	// Name is the tool's name, such as "Shell" or "Edit".
	Name string `json:"name"`
	// Input is the arguments as JSON values: maps, lists, strings, numbers. The
	// caller must not change it.
	Input any `json:"input,omitempty"`
	// Output is the result as text, or the reason for its absence.
	Output string `json:"output,omitempty"`
	Status Status `json:"status"`
	// Exit is the exit code of a command.
	Exit int `json:"exit_code,omitempty"`
	// Path is the file or directory of the call.
	Path string `json:"path,omitempty"`
	// Diff is the change to files in unified form.
	Diff string `json:"diff,omitempty"`
	// Added and Removed count the changed lines.
	Added   int `json:"added,omitempty"`
	Removed int `json:"removed,omitempty"`
	// Subagent is the id of the subagent that the call started.
	Subagent string `json:"subagent,omitempty"`
	// Omitted is how many bytes of Output and Diff were omitted.
	Omitted int `json:"omitted,omitempty"`
}

// heavy is the size from which output can be omitted.
const heavy = 16 << 10

// lighten omits output and diff if they are heavy.
func (t *Tool) lighten() {
	if len(t.Output) > heavy {
		t.Omitted += len(t.Output)
		t.Output = ""
	}
	if len(t.Diff) > heavy {
		t.Omitted += len(t.Diff)
		t.Diff = ""
	}
}
