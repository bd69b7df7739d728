package copilot

import (
	"encoding/json"
	"path/filepath"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/internal/servers"
)

// timeout is the time limit of a hook in seconds.
const timeout = 10

// hooks are the requested events.
var hooks = []string{
	"sessionStart", "userPromptSubmitted", "preToolUse", "postToolUse", "postToolUseFailure",
	"subagentStart", "subagentStop", "agentStop", "sessionEnd",
}

// Connection returns a file of hooks that is entirely ours, for the user or for a
// project.
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
		// A failing hook denies the tool, even if only its program is missing.
		file.Hooks[event] = []hook{{"command", c.Line(event) + " || true", timeout}}
	}
	content, err := json.MarshalIndent(file, "", "  ")
	if err != nil {
		return nil, err
	}
	return []foreign.Change{{Path: filepath.Join(dir, "stet.json"), Content: append(content, '\n')}}, nil
}

// Tools returns an entry among the user's servers. It is unknown which file of a project the
// CLI reads.
func (Adapter) Tools(h foreign.Host, c foreign.Connect) ([]foreign.Change, error) {
	if c.Project != "" {
		return nil, nil
	}
	return servers.Member(filepath.Join(home(h), "mcp-config.json"), []string{"mcpServers"}, c, func(program string, args []string) any {
		return servers.Server{Type: "local", Command: program, Args: args, Tools: []string{"*"}}
	})
}

// Skips returns "": nothing is known to prevent the CLI from running its hooks.
func (Adapter) Skips(foreign.Host, foreign.Connect) (string, error) { return "", nil }
