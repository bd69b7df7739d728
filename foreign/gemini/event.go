package gemini

import (
	"encoding/json"
	"fmt"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/internal/hooks"
)

// payload is the payload of a hook.
type payload struct {
	SessionID  string          `json:"session_id"`
	Transcript string          `json:"transcript_path"`
	Cwd        string          `json:"cwd"`
	Event      string          `json:"hook_event_name"`
	Prompt     string          `json:"prompt"`
	ToolName   string          `json:"tool_name"`
	ToolInput  json.RawMessage `json:"tool_input"`
	Response   struct {
		Content json.RawMessage `json:"llmContent"`
		Error   json.RawMessage `json:"error"`
	} `json:"tool_response"`
	Continued bool `json:"stop_hook_active"`
}

var kinds = map[string]foreign.EventKind{
	"SessionStart": foreign.SessionStart,
	"BeforeAgent":  foreign.TurnStart,
	"BeforeTool":   foreign.ToolStart,
	"AfterTool":    foreign.ToolEnd,
	"AfterAgent":   foreign.TurnEnd,
	"SessionEnd":   foreign.SessionEnd,
}

// Event decodes a payload. The CLI has no ids for turns or calls, and does not report
// that a tool runs in a subagent.
func (*Adapter) Event(event string, data []byte) (foreign.Event, error) {
	var p payload
	if err := json.Unmarshal(data, &p); err != nil {
		return foreign.Event{}, fmt.Errorf("%w: %w", foreign.ErrEvent, err)
	}
	if p.Event != event || p.SessionID == "" {
		return foreign.Event{}, fmt.Errorf("%w: a payload of %q for %q", foreign.ErrEvent, p.Event, event)
	}
	e := foreign.Event{
		Kind: kinds[event], Session: p.SessionID, Workspace: p.Cwd, Transcript: p.Transcript, Prompt: p.Prompt,
		Continued: p.Continued, Raw: data,
	}
	if e.Kind == foreign.ToolStart || e.Kind == foreign.ToolEnd {
		c := toolCall{Name: p.ToolName, Args: p.ToolInput}.call()
		if e.Kind == foreign.ToolEnd {
			c.Answered, c.Failed = true, len(p.Response.Error) > 0 && string(p.Response.Error) != "null"
			json.Unmarshal(p.Response.Content, &c.Output)
		}
		e.Call = &c
	}
	return e, nil
}

// Notice adds a line to the context of a prompt.
func (*Adapter) Notice(text string) []byte { return hooks.Notice("BeforeAgent", text) }
