package pi

import (
	"encoding/json"
	"fmt"

	"github.com/stet-dev/stet/foreign"
)

// payload is what our extension sends.
type payload struct {
	Event   string `json:"event"`
	Session string `json:"session"`
	File    string `json:"file"`
	Leaf    string `json:"leaf"`
	Cwd     string `json:"cwd"`
	Reason  string `json:"reason"`
	Prompt  string `json:"prompt"`
	Tool    *struct {
		ID     string          `json:"id"`
		Name   string          `json:"name"`
		Input  json.RawMessage `json:"input"`
		Failed bool            `json:"failed"`
	} `json:"tool"`
}

var kinds = map[string]foreign.EventKind{
	"session_start":      foreign.SessionStart,
	"before_agent_start": foreign.TurnStart,
	"tool_call":          foreign.ToolStart,
	"tool_result":        foreign.ToolEnd,
	"agent_end":          foreign.TurnEnd,
	"session_shutdown":   foreign.SessionEnd,
}

// Event decodes what the extension sends. pi has no id for a turn when the turn begins.
func (*Adapter) Event(event string, data []byte) (foreign.Event, error) {
	var p payload
	if err := json.Unmarshal(data, &p); err != nil {
		return foreign.Event{}, fmt.Errorf("%w: %w", foreign.ErrEvent, err)
	}
	if p.Event != event {
		return foreign.Event{}, fmt.Errorf("%w: a payload of %q for %q", foreign.ErrEvent, p.Event, event)
	}
	e := foreign.Event{
		Kind: kinds[event], Session: p.Session, Workspace: p.Cwd, Transcript: p.File, Prompt: p.Prompt, Raw: data,
	}
	if p.Tool != nil {
		c := toolCall(p.Tool.ID, p.Tool.Name, p.Tool.Input)
		c.Answered, c.Failed = e.Kind == foreign.ToolEnd, p.Tool.Failed
		e.Call = &c
	}
	return e, nil
}

// Notice returns nil: the extension passes on what was said and reads no answer.
func (*Adapter) Notice(string) []byte { return nil }
