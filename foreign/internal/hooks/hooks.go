// Package hooks implements the hook protocol that Claude Code introduced and others
// adopted: the payload of an event, the meaning of its name, and the entries of a
// settings file that run a command for it. It promises that anything but a payload
// gives foreign.ErrEvent. Peculiarities of one agent are left to its adapter.
package hooks

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/stet-dev/stet/foreign"
)

// Payload is the input of a hook. Fields that an event does not have are empty.
type Payload struct {
	Session    string          `json:"session_id"`
	Transcript string          `json:"transcript_path"`
	Dir        string          `json:"cwd"`
	PromptID   string          `json:"prompt_id"`
	Prompt     string          `json:"prompt"`
	Agent      string          `json:"agent_id"`
	Tool       string          `json:"tool_name"`
	Input      json.RawMessage `json:"tool_input"`
	Response   json.RawMessage `json:"tool_response"`
	ToolID     string          `json:"tool_use_id"`
	Error      string          `json:"error"`
	Background []task          `json:"background_tasks"`
	Continued  bool            `json:"stop_hook_active"`
	// Source is what began a session. Agents report a compaction as a beginning, too.
	Source string `json:"source"`
}

// task is a task in the background.
type task struct {
	ID   string `json:"id"`
	Type string `json:"type"`
}

// UnmarshalJSON lets a task of an unknown form count as one without an id.
func (t *task) UnmarshalJSON(data []byte) error {
	type fields task
	_ = json.Unmarshal(data, (*fields)(t))
	return nil
}

// background counts the tasks that continue the turn's work. The end of a subagent lists it
// as running. A shell, such as that of a server, may run for days, and whoever works beside
// it is not the turn.
func (p Payload) background() (n int) {
	for _, t := range p.Background {
		if t.Type != "shell" && (t.ID == "" || t.ID != p.Agent) {
			n++
		}
	}
	return n
}

// Decode decodes a payload.
func Decode(payload []byte) (Payload, error) {
	var p Payload
	if err := json.Unmarshal(payload, &p); err != nil {
		return p, fmt.Errorf("%w: %v", foreign.ErrEvent, err)
	}
	if p.Session == "" {
		return p, fmt.Errorf("%w: the payload names no session", foreign.ErrEvent)
	}
	return p, nil
}

// Event returns the event of a payload, with the fields that all agents share. A
// compaction, which comes in the middle of a turn, is none.
func (p Payload) Event(kind foreign.EventKind, raw []byte) foreign.Event {
	if kind == foreign.SessionStart && p.Source == "compact" {
		kind = foreign.NoEvent
	}
	return foreign.Event{
		Kind: kind, Session: p.Session, Turn: p.PromptID, Workspace: p.Dir, Transcript: p.Transcript,
		Prompt: p.Prompt, Background: p.background(), Continued: p.Continued, Raw: raw,
	}
}

// Kind returns the kind of an event of the protocol, NoEvent if it means nothing
// here.
func Kind(event string) foreign.EventKind {
	switch event {
	case "SessionStart":
		return foreign.SessionStart
	case "UserPromptSubmit":
		return foreign.TurnStart
	case "PreToolUse":
		return foreign.ToolStart
	case "PostToolUse", "PostToolUseFailure":
		return foreign.ToolEnd
	case "SubagentStart":
		return foreign.TaskStart
	case "SubagentStop":
		return foreign.TaskEnd
	case "Stop", "Interrupt":
		return foreign.TurnEnd
	case "SessionEnd":
		return foreign.SessionEnd
	}
	return foreign.NoEvent
}

// Subscription is an event that the agent reports.
type Subscription struct {
	Event   string
	Timeout time.Duration
	// Tools means that the subscription has to name the tools.
	Tools bool
}

// Usual are the events that Claude Code and its descendants report.
func Usual() []Subscription {
	const quick, long = 10 * time.Second, 30 * time.Second
	return []Subscription{
		{Event: "SessionStart", Timeout: quick},
		{Event: "UserPromptSubmit", Timeout: long},
		{Event: "PreToolUse", Timeout: quick, Tools: true},
		{Event: "PostToolUse", Timeout: quick, Tools: true},
		{Event: "SubagentStart", Timeout: quick},
		{Event: "SubagentStop", Timeout: quick},
		{Event: "Stop", Timeout: long},
		{Event: "SessionEnd", Timeout: quick},
	}
}

// Style is how an agent writes entries.
type Style struct {
	// Unit is what it counts timeouts in.
	Unit time.Duration
	// AllTools is the pattern that matches every tool.
	AllTools string
	// Named entries have a name, which the agent shows.
	Named bool
	// Survives means that the agent stops if the program of a hook is missing, so the
	// command must succeed without it.
	Survives bool
}

// Change returns the change of a settings file that runs a command for each event.
func Change(path string, c foreign.Connect, style Style, events []Subscription) (foreign.Change, error) {
	change := foreign.Change{Path: path}
	if len(c.Command) == 0 {
		return change, fmt.Errorf("%w: no command", foreign.ErrSettings)
	}
	for _, e := range events {
		value, err := json.Marshal(style.entry(e, c.Line(e.Event)))
		if err != nil {
			return change, err
		}
		change.Hooks = append(change.Hooks, foreign.HookEntry{
			List: []string{"hooks", e.Event}, Value: string(value), Ours: c.Ours(e.Event),
		})
	}
	return change, nil
}

type group struct {
	Matcher string    `json:"matcher,omitempty"`
	Hooks   []handler `json:"hooks"`
}

type handler struct {
	Type    string `json:"type"`
	Name    string `json:"name,omitempty"`
	Command string `json:"command"`
	Timeout int64  `json:"timeout"`
}

func (s Style) entry(e Subscription, command string) group {
	if s.Survives {
		command += " || true"
	}
	h := handler{Type: "command", Command: command, Timeout: int64(e.Timeout / s.Unit)}
	if s.Named {
		h.Name = "stet " + e.Event
	}
	g := group{Hooks: []handler{h}}
	if e.Tools {
		g.Matcher = s.AllTools
	}
	return g
}
