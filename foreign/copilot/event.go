package copilot

import (
	"encoding/json"
	"fmt"

	"github.com/stet-dev/stet/foreign"
)

// payload is the payload of a Copilot hook.
type payload struct {
	Session    string          `json:"sessionId"`
	Agent      string          `json:"agentId"`
	Parent     string          `json:"parentAgentId"`
	Cwd        string          `json:"cwd"`
	Transcript string          `json:"transcriptPath"`
	Prompt     string          `json:"prompt"`
	Tool       string          `json:"toolName"`
	Args       json.RawMessage `json:"toolArgs"`
	Result     struct {
		Type string `json:"resultType"`
		Text string `json:"textResultForLlm"`
	} `json:"toolResult"`
}

var kinds = map[string]foreign.EventKind{
	"sessionStart":        foreign.SessionStart,
	"userPromptSubmitted": foreign.TurnStart,
	"preToolUse":          foreign.ToolStart,
	"postToolUse":         foreign.ToolEnd,
	"postToolUseFailure":  foreign.ToolEnd,
	"subagentStart":       foreign.TaskStart,
	"subagentStop":        foreign.TaskEnd,
	"agentStop":           foreign.TurnEnd,
	"sessionEnd":          foreign.SessionEnd,
}

// Event decodes the payload of a hook. Copilot does not identify the turn or the
// call.
func (Adapter) Event(name string, raw []byte) (foreign.Event, error) {
	var p payload
	if err := json.Unmarshal(raw, &p); err != nil {
		return foreign.Event{}, fmt.Errorf("%w: %w", foreign.ErrEvent, err)
	}
	if p.Session == "" {
		return foreign.Event{}, fmt.Errorf("%w: it has no sessionId", foreign.ErrEvent)
	}
	e := foreign.Event{
		Kind: kinds[name], Session: p.Session, Subagent: p.Agent, Workspace: p.Cwd, Transcript: p.Transcript, Prompt: p.Prompt, Raw: raw,
	}
	if p.Agent != "" {
		if p.Session == p.Agent && p.Parent != "" {
			e.Session = p.Parent // inside a subagent the session is the subagent
		}
		if e.Kind == foreign.TurnStart || e.Kind == foreign.TurnEnd {
			e.Kind = foreign.NoEvent // steps of the session's turn
		}
	}
	if e.Kind == foreign.ToolStart || e.Kind == foreign.ToolEnd {
		c := callOf("", p.Tool, p.Args)
		if e.Kind == foreign.ToolEnd {
			c.Output, c.Answered = p.Result.Text, true
			c.Failed = name == "postToolUseFailure" || p.Result.Type != "" && p.Result.Type != "success"
		}
		e.Call = &c
	}
	return e, nil
}

// Notice returns nil: the agent ignores what this hook prints.
func (Adapter) Notice(string) []byte { return nil }
