package codex

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/internal/hooks"
)

// payload is the payload of a Codex hook.
type payload struct {
	Session    string          `json:"session_id"`
	Turn       string          `json:"turn_id"`
	Agent      string          `json:"agent_id"`
	Transcript string          `json:"transcript_path"`
	Cwd        string          `json:"cwd"`
	Name       string          `json:"hook_event_name"`
	Source     string          `json:"source"`
	Prompt     string          `json:"prompt"`
	Tool       string          `json:"tool_name"`
	ToolID     string          `json:"tool_use_id"`
	Input      json.RawMessage `json:"tool_input"`
	Response   json.RawMessage `json:"tool_response"`
	Continued  bool            `json:"stop_hook_active"`
}

// Event decodes the payload of a hook.
func (Adapter) Event(name string, raw []byte) (foreign.Event, error) {
	var p payload
	if err := json.Unmarshal(raw, &p); err != nil {
		return foreign.Event{}, fmt.Errorf("%w: %w", foreign.ErrEvent, err)
	}
	if p.Session == "" {
		return foreign.Event{}, fmt.Errorf("%w: it has no session_id", foreign.ErrEvent)
	}
	e := foreign.Event{
		Kind: hooks.Kind(firstOf(name, p.Name)), Session: p.Session, Turn: p.Turn, Subagent: p.Agent,
		Workspace: p.Cwd, Transcript: p.Transcript, Prompt: p.Prompt, Continued: p.Continued, Raw: raw,
	}
	if p.Agent != "" {
		inside(&e)
	}
	if e.Kind == foreign.SessionStart && p.Source == "compact" {
		e.Kind = foreign.NoEvent // in the middle of a turn
	}
	if e.Kind == foreign.ToolStart || e.Kind == foreign.ToolEnd {
		e.Call = p.call(e.Kind == foreign.ToolEnd)
	}
	return e, nil
}

// inside adapts an event of a subagent. Its turn and, usually, its record are those
// of the subagent, not of the session that started it; its prompt and its answer are
// steps of that session's turn.
func inside(e *foreign.Event) {
	e.Turn = ""
	if strings.Contains(filepath.Base(e.Transcript), e.Subagent) {
		e.Transcript = ""
	}
	if e.Kind == foreign.TurnStart || e.Kind == foreign.TurnEnd {
		e.Kind = foreign.NoEvent
	}
}

// call returns the tool of an event.
func (p payload) call(ended bool) *foreign.Call {
	c := callOf(p.ToolID, p.Tool, string(p.Input))
	if ended {
		c.Output, c.Answered = text(p.Response), true
		outcome{ExitCode: exitCode(c.Output)}.apply(&c)
	}
	return &c
}

// Notice adds a line to the context of a prompt.
func (Adapter) Notice(text string) []byte { return hooks.Notice("UserPromptSubmit", text) }
