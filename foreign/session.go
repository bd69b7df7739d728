package foreign

import (
	"encoding/json"
	"io"
	"time"
)

// Session is one conversation of an agent.
type Session struct {
	// Agent is the name of the adapter.
	Agent string
	// ID is the agent's own id of the session.
	ID string
	// Path is the file, directory or database that holds the session.
	Path string
	// Workspace is the directory that the agent works in, "" if the record does not say.
	Workspace string
	Title     string
	// Started and Updated are zero if the record does not say.
	Started, Updated time.Time
	// Size is roughly how many bytes have to be read for the session.
	Size int64
	// Parent is the session whose tool call started this one as a subagent, and
	// ParentCall the id of that call if known. They are "" for other sessions.
	Parent, ParentCall string
	// ForkedFrom is the session that this one was forked from, and ForkedAfter the id of
	// the last turn that both share, "" if unknown.
	ForkedFrom, ForkedAfter string
}

// Turn is a prompt and everything that the agent did until the next.
type Turn struct {
	// ID is the agent's own id of the turn, or that of the prompt. It is unique in the
	// session and does not change when the session is read again.
	ID string
	// EventID is how events name the turn (Event.Turn) if that is not ID. If several
	// turns have it, because a fork copied some, events mean the last.
	EventID string
	// Follows is the id of the turn that this one continues. It is the previous turn
	// unless the conversation was rewound, and Beginning if it was rewound to before its
	// first turn. "" continues the turn before it.
	Follows string
	Prompt  string
	// Automatic means that the agent wrote the prompt, not a person: the report of a
	// background task, or the text that replaces a compacted conversation.
	Automatic bool
	Steps     []Step
	// Model is the last model that answered.
	Model string
	Usage Usage
	// Started and Ended are zero where the record does not say.
	Started, Ended time.Time
	// Interrupted means that the record says so.
	Interrupted bool
	// Done means that the record shows the end of the turn. The last turn of a session
	// may still grow.
	Done bool
	// Cut is what [Adapter.Cut] needs to continue after this turn, in the agent's terms.
	// "" means that the conversation cannot be continued after it.
	Cut string
	// Mark is where reading continues: after the turn or, while it is not done, at its
	// beginning.
	Mark Mark
}

// Beginning is the value of Follows for a turn that begins the conversation again.
const Beginning = "(beginning)"

// Step is a part of an answer. One field besides At is set.
type Step struct {
	Text     string
	Thinking string
	Call     *Call
	At       time.Time
}

// Tool is the kind of a tool, as far as agents share it.
type Tool int

// The kinds of tools.
const (
	OtherTool  Tool = iota
	ShellTool       // runs Command
	EditTool        // changes or creates Paths
	ReadTool        // reads Paths
	DeleteTool      // deletes Paths
	TaskTool        // hands Task to a subagent
)

// Call is the call of a tool.
type Call struct {
	// ID is the agent's own id of the call.
	ID   string
	Name string // as the agent names it
	Tool Tool
	// Input is the arguments as recorded: a JSON value.
	Input json.RawMessage
	// Command is what a shell tool ran; Task is the prompt of a subagent.
	Command, Task string
	// Paths are the files of an edit, read or delete tool, as recorded.
	Paths []string
	// Output is what the model was shown. Answered is false until the output is known.
	Output   string
	Answered bool
	Failed   bool
	// ExitCode is the exit code of a command, nil if the record does not say.
	ExitCode *int
	// Started and Ended are zero where the record does not say.
	Started, Ended time.Time
	// Subagent is the session that a task tool started, if known.
	Subagent string
}

// Usage counts tokens as the provider reports them. A count that the record does not
// have is zero.
type Usage struct {
	// Input counts tokens that were read and were not in a cache.
	Input, Output, CacheRead, CacheWrite, Reasoning int64
	// CostUSD is the cost of the turn according to the record; nil if it does not say.
	CostUSD *float64
}

// Add adds the counts of another usage.
func (u *Usage) Add(v Usage) {
	u.Input += v.Input
	u.Output += v.Output
	u.CacheRead += v.CacheRead
	u.CacheWrite += v.CacheWrite
	u.Reasoning += v.Reasoning
	if v.CostUSD != nil {
		sum := *v.CostUSD
		if u.CostUSD != nil {
			sum += *u.CostUSD
		}
		u.CostUSD = &sum
	}
}

// Mark is a position in a session: "" is its beginning. Only the adapter that made a
// mark can read it. A mark is short and may be stored.
type Mark string

// File is a part of a session's record as the agent wrote it.
type File struct {
	// Name is the name within the session, with slashes, such as "session.jsonl".
	Name string
	// Path is the file on disk. If it is "", Data is the content.
	Path string
	Data []byte
	// Open opens the content if the file at Path holds it in another form, such as
	// compressed. It is nil otherwise.
	Open func() (io.ReadCloser, error)
}
