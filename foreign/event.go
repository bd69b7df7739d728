package foreign

import "encoding/json"

// EventKind is what an event means to stet.
type EventKind int

// The kinds of events.
const (
	NoEvent      EventKind = iota
	SessionStart           // a session begins or is resumed
	TurnStart              // a prompt was submitted; nothing was done yet
	ToolStart              // a tool is about to run
	ToolEnd                // a tool ran
	TaskStart              // a subagent begins
	TaskEnd                // a subagent ended
	TurnEnd                // the agent answered; background tasks may still run
	SessionEnd             // the session ends
)

// Event is what a hook reported.
type Event struct {
	Kind EventKind
	// Session is the id of the session; for an event inside a subagent it is the session
	// that started the subagent, if the agent reports that.
	Session string
	// Turn is the agent's id of the turn, "" if the agent gives none.
	Turn string
	// Subagent is the id of the subagent in which it happened, or "".
	Subagent string
	// Workspace is the directory that the agent works in.
	Workspace string
	// Transcript is the path of the session's record, "" if unknown.
	Transcript string
	Prompt     string
	// Automatic means that the agent wrote the prompt, not a person.
	Automatic bool
	// Call is the tool of ToolStart and ToolEnd.
	Call *Call
	// Background is the number of tasks that continue after TurnEnd.
	Background int
	// Continued means that the turn went on after an earlier TurnEnd, because a hook of
	// someone else asked for more.
	Continued bool
	// Raw is the payload.
	Raw json.RawMessage
}
