package opencode

import (
	"encoding/json"
	"fmt"

	"github.com/stet-dev/stet/foreign"
)

// payload is what our plugin sends.
type payload struct {
	Event   string `json:"event"`
	Session string `json:"session"`
	Parent  string `json:"parent"`
	Turn    string `json:"turn"`
	Cwd     string `json:"cwd"`
	Prompt  string `json:"prompt"`
	Tool    *struct {
		ID    string          `json:"id"`
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
	} `json:"tool"`
}

var kinds = map[string]foreign.EventKind{
	"session.created":     foreign.SessionStart,
	"chat.message":        foreign.TurnStart,
	"tool.execute.before": foreign.ToolStart,
	"tool.execute.after":  foreign.ToolEnd,
	"session.idle":        foreign.TurnEnd,
}

// subagentKinds are the kinds of events inside a subagent, which is a separate
// session.
var subagentKinds = map[foreign.EventKind]foreign.EventKind{
	foreign.TurnStart: foreign.TaskStart,
	foreign.ToolStart: foreign.ToolStart,
	foreign.ToolEnd:   foreign.ToolEnd,
	foreign.TurnEnd:   foreign.TaskEnd,
}

// Event decodes what the plugin sends.
func (*Adapter) Event(event string, data []byte) (foreign.Event, error) {
	var p payload
	if err := json.Unmarshal(data, &p); err != nil {
		return foreign.Event{}, fmt.Errorf("%w: %w", foreign.ErrEvent, err)
	}
	if p.Event != event || p.Session == "" {
		return foreign.Event{}, fmt.Errorf("%w: a payload of %q for %q", foreign.ErrEvent, p.Event, event)
	}
	e := foreign.Event{Kind: kinds[event], Session: p.Session, Turn: p.Turn, Workspace: p.Cwd, Prompt: p.Prompt, Raw: data}
	if p.Parent != "" {
		e.Kind, e.Session, e.Subagent = subagentKinds[e.Kind], p.Parent, p.Session
	}
	if p.Tool != nil {
		c := toolCall(p.Tool.ID, p.Tool.Name, p.Tool.Input)
		c.Answered = e.Kind == foreign.ToolEnd
		e.Call = &c
	}
	return e, nil
}

// Notice returns nil: the plugin passes on what was said and reads no answer.
func (*Adapter) Notice(string) []byte { return nil }
