package claudecode

import (
	"slices"
	"strings"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/internal/hooks"
)

// Event decodes a hook's payload. The turn of an event is the prompt's id, which the
// transcript has as promptId and turns have as EventID.
func (Adapter) Event(name string, payload []byte) (foreign.Event, error) {
	p, err := hooks.Decode(payload)
	if err != nil {
		return foreign.Event{}, err
	}
	e := p.Event(hooks.Kind(name), payload)
	if p.Agent != "" {
		e.Subagent = subagentID(p.Session, p.Agent)
	}
	e.Automatic = e.Kind == foreign.TurnStart && automatic(p.Prompt)
	if e.Kind == foreign.ToolStart || e.Kind == foreign.ToolEnd {
		call := newCall(p.ToolID, p.Tool, p.Input)
		if e.Kind == foreign.ToolEnd {
			call.Answered, call.Failed = true, name == "PostToolUseFailure"
			answer(&call, p.Session, p.Response)
		}
		e.Call = &call
	}
	return e, nil
}

// automatic reports whether Claude Code wrote a prompt itself.
func automatic(prompt string) bool {
	return begins(prompt, "<task-notification>", "<teammate-message", "<cross-session-message", "<channel ")
}

// begins reports whether a text begins with one of several.
func begins(text string, with ...string) bool {
	return slices.ContainsFunc(with, func(begin string) bool { return strings.HasPrefix(text, begin) })
}

// subagentID is the id of the session of a subagent.
func subagentID(session, agent string) string { return session + "/agent-" + agent }

// Notice adds a line to the context of a prompt.
func (Adapter) Notice(text string) []byte { return hooks.Notice("UserPromptSubmit", text) }
