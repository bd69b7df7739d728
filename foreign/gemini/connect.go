package gemini

import (
	"encoding/json"
	"fmt"

	"github.com/stet-dev/stet/foreign"
)

// hooks are the events that are asked for, with their limits in milliseconds. BeforeModel
// and AfterModel hold the whole conversation and are not.
var hooks = []struct {
	event   string
	tool    bool
	timeout int
}{
	{"SessionStart", false, 5000},
	{"BeforeAgent", false, 10000},
	{"BeforeTool", true, 5000},
	{"AfterTool", true, 5000},
	{"AfterAgent", false, 10000},
	{"SessionEnd", false, 5000},
}

// Connection returns the hooks of the settings. The CLI runs them in a shell.
func (*Adapter) Connection(h foreign.Host, c foreign.Connect) ([]foreign.Change, error) {
	if len(c.Command) == 0 {
		return nil, fmt.Errorf("%w: no command", foreign.ErrSettings)
	}
	change := foreign.Change{Path: settingsPath(h, c.Project)}
	for _, hook := range hooks {
		value, err := json.Marshal(entry(hook.event, c.Line(hook.event), hook.tool, hook.timeout))
		if err != nil {
			return nil, err
		}
		change.Hooks = append(change.Hooks, foreign.HookEntry{
			List: []string{"hooks", hook.event}, Value: string(value), Ours: c.Ours(hook.event),
		})
	}
	return []foreign.Change{change}, nil
}

type hookEntry struct {
	Matcher string        `json:"matcher,omitempty"`
	Hooks   []hookCommand `json:"hooks"`
}

type hookCommand struct {
	Type    string `json:"type"`
	Name    string `json:"name"`
	Command string `json:"command"`
	Timeout int    `json:"timeout"`
}

func entry(event, command string, tool bool, timeout int) hookEntry {
	e := hookEntry{Hooks: []hookCommand{{Type: "command", Name: "stet " + event, Command: command, Timeout: timeout}}}
	if tool {
		e.Matcher = ".*"
	}
	return e
}
