package codex

import (
	"encoding/json"
	"path/filepath"

	"github.com/stet-dev/stet/foreign"
)

const hooksFile = "hooks.json"

// note is what the user has to do: Codex skips hooks that its user did not approve.
const note = "run /hooks in codex once and approve them: codex asks you, and skips hooks that you did not approve"

// hooks are the events that are asked for, with their time limits in seconds. Codex
// allows no more than 3 at an end.
var hooks = []struct {
	event   string
	tools   bool
	timeout int
}{
	{"SessionStart", false, 10},
	{"UserPromptSubmit", false, 10},
	{"PreToolUse", true, 10},
	{"PostToolUse", true, 10},
	{"SubagentStart", false, 10},
	{"SubagentStop", false, 10},
	{"Stop", false, 10},
	{"Interrupt", false, 3},
	{"SessionEnd", false, 3},
}

// Connection returns the entries of hooks.json, of the user or of a project.
func (Adapter) Connection(h foreign.Host, c foreign.Connect) ([]foreign.Change, error) {
	dir := home(h)
	if c.Project != "" {
		dir = filepath.Join(c.Project, ".codex")
	}
	change := foreign.Change{Path: filepath.Join(dir, hooksFile), Note: note}
	for _, hook := range hooks {
		value, err := entry(c.Line(hook.event), hook.tools, hook.timeout)
		if err != nil {
			return nil, err
		}
		change.Hooks = append(change.Hooks, foreign.HookEntry{
			List: []string{"hooks", hook.event}, Value: value, Ours: c.Ours(hook.event),
		})
	}
	return []foreign.Change{change}, nil
}

// entry returns one element of a list of hooks.
func entry(command string, tools bool, timeout int) (string, error) {
	type handler struct {
		Type    string `json:"type"`
		Command string `json:"command"`
		Timeout int    `json:"timeout"`
	}
	matcher := ""
	if tools {
		matcher = "*"
	}
	value, err := json.Marshal(struct {
		Matcher string    `json:"matcher,omitempty"`
		Hooks   []handler `json:"hooks"`
	}{matcher, []handler{{"command", command, timeout}}})
	return string(value), err
}
