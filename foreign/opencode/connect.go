package opencode

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/internal/servers"
)

// plugin runs a command at OpenCode's events. It needs no other package, catches every
// error and stops waiting after a bound; the command then goes on alone.
//
//go:embed plugin.js
var plugin []byte

func pluginPath(h foreign.Host, project string) string {
	if project != "" {
		return filepath.Join(project, ".opencode", "plugin", "stet.js")
	}
	return filepath.Join(base(h, "XDG_CONFIG_HOME", ".config"), "opencode", "plugin", "stet.js")
}

// Connection returns the plugin as one file of our own.
func (*Adapter) Connection(h foreign.Host, c foreign.Connect) ([]foreign.Change, error) {
	if len(c.Command) == 0 {
		return nil, fmt.Errorf("%w: no command", foreign.ErrSettings)
	}
	command, err := json.Marshal(c.Words())
	if err != nil {
		return nil, err
	}
	content := bytes.Replace(plugin, []byte(`["stet", "hook", "opencode"]`), command, 1)
	return []foreign.Change{{Path: pluginPath(h, c.Project), Content: content}}, nil
}

// Tools returns a server of the user's settings, or of a project's.
func (*Adapter) Tools(h foreign.Host, c foreign.Connect) ([]foreign.Change, error) {
	dir := c.Project
	if dir == "" {
		dir = filepath.Join(base(h, "XDG_CONFIG_HOME", ".config"), "opencode")
	}
	path := filepath.Join(dir, "opencode.json")
	if other := path + "c"; exists(other) && !exists(path) { // with comments
		path = other
	}
	return servers.Member(path, []string{"mcp"}, c, func(program string, args []string) any {
		return struct {
			Type    string   `json:"type"`
			Command []string `json:"command"`
		}{"local", append([]string{program}, args...)}
	})
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Skips returns "": OpenCode runs every plugin that it finds.
func (*Adapter) Skips(foreign.Host, foreign.Connect) (string, error) { return "", nil }
