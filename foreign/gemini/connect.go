package gemini

import (
	"encoding/json"
	"fmt"
	"strings"

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
	if len(c.Command) < 2 {
		return nil, fmt.Errorf("%w: no command", foreign.ErrSettings)
	}
	ours := quote(c.Command[1:])
	change := foreign.Change{Path: settingsPath(h, c.Project)}
	for _, hook := range hooks {
		value, err := json.Marshal(entry(hook.event, quote(append(c.Command[:len(c.Command):len(c.Command)], hook.event)), hook.tool, hook.timeout))
		if err != nil {
			return nil, err
		}
		change.Hooks = append(change.Hooks, foreign.HookEntry{
			List: []string{"hooks", hook.event}, Value: string(value), Ours: ours + " " + hook.event,
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

// quote joins words for a shell.
func quote(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		if quoted[i] = w; w == "" || strings.Trim(w, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+:@%") != "" {
			quoted[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}
