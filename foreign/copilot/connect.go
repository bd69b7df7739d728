package copilot

import (
	"encoding/json"
	"path/filepath"

	"github.com/stet-dev/stet/foreign"
)

// timeout is the time limit of a hook in seconds.
const timeout = 10

// hooks are the events that are asked for.
var hooks = []string{
	"sessionStart", "userPromptSubmitted", "preToolUse", "postToolUse", "postToolUseFailure",
	"subagentStart", "subagentStop", "agentStop", "sessionEnd",
}

// Connection returns a file of hooks that is only ours, of the user or of a project.
func (Adapter) Connection(h foreign.Host, c foreign.Connect) ([]foreign.Change, error) {
	dir := filepath.Join(home(h), "hooks")
	if c.Project != "" {
		dir = filepath.Join(c.Project, ".github", "hooks")
	}
	type hook struct {
		Type    string `json:"type"`
		Bash    string `json:"bash"`
		Timeout int    `json:"timeoutSec"`
	}
	file := struct {
		Version int               `json:"version"`
		Hooks   map[string][]hook `json:"hooks"`
	}{1, map[string][]hook{}}
	for _, event := range hooks {
		// A hook that fails denies the tool, also if its program is missing.
		file.Hooks[event] = []hook{{"command", c.Line(event) + " || true", timeout}}
	}
	content, err := json.MarshalIndent(file, "", "  ")
	if err != nil {
		return nil, err
	}
	return []foreign.Change{{Path: filepath.Join(dir, "stet.json"), Content: append(content, '\n')}}, nil
}
