// Package hooks is the hook protocol that Claude Code began and others took over: the
// payload of an event, and the entry of a settings file that runs a command for one. It
// promises that a payload which is not one gives foreign.ErrEvent; what an event means is
// left to adapters.
package hooks

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/stet-dev/stet/foreign"
)

// Payload is what the agent writes to the hook. Fields that an event does not have are
// empty.
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
	Background []any           `json:"background_tasks"`
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

// Event returns the event of a payload with what all agents have in common.
func (p Payload) Event(kind foreign.EventKind, raw []byte) foreign.Event {
	return foreign.Event{
		Kind: kind, Session: p.Session, Turn: p.PromptID, Workspace: p.Dir, Transcript: p.Transcript,
		Prompt: p.Prompt, Background: len(p.Background), Raw: raw,
	}
}

// Subscription is an event that the agent reports.
type Subscription struct {
	Event string
	// Matcher means that the event has to say for which tools it is.
	Matcher bool
	Timeout time.Duration
}

// Entries returns the entries for a settings file. unit is what the agent counts timeouts
// in.
func Entries(c foreign.Connect, unit time.Duration, events ...Subscription) []foreign.HookEntry {
	type handler struct {
		Type    string `json:"type"`
		Command string `json:"command"`
		Timeout int64  `json:"timeout"`
	}
	type group struct {
		Matcher string    `json:"matcher,omitempty"`
		Hooks   []handler `json:"hooks"`
	}
	var out []foreign.HookEntry
	for _, e := range events {
		command := append(append([]string(nil), c.Command...), e.Event)
		g := group{Hooks: []handler{{Type: "command", Command: Quote(command), Timeout: int64(e.Timeout / unit)}}}
		if e.Matcher {
			g.Matcher = "*"
		}
		value, err := json.Marshal(g)
		if err != nil {
			panic(err) // strings and numbers only
		}
		ours := command
		if len(ours) > 1 {
			ours = ours[1:] // the program may move
		}
		out = append(out, foreign.HookEntry{List: []string{"hooks", e.Event}, Value: string(value), Ours: Quote(ours)})
	}
	return out
}

// Quote quotes arguments for a POSIX shell.
func Quote(args []string) string {
	quoted := make([]string, len(args))
	for i, arg := range args {
		if arg != "" && strings.Trim(arg, safe) == "" {
			quoted[i] = arg
			continue
		}
		quoted[i] = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
	}
	return strings.Join(quoted, " ")
}

// safe are characters that mean nothing to a shell.
const safe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@%+,="
