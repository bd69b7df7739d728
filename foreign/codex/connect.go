package codex

import (
	"path/filepath"
	"slices"
	"time"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/internal/hooks"
	"github.com/stet-dev/stet/foreign/internal/servers"
)

const hooksFile = "hooks.json"

// note is what the user has to do: Codex skips hooks that its user did not approve.
const note = "start codex: it says \"Hooks need review\"; choose \"Trust all and continue\", or look at them with \"Review hooks\". " +
	"Until then codex skips them, and 'codex exec' does not ask"

// limited are the events that Codex ends after 3 seconds.
var limited = []string{"SessionEnd", "Interrupt"}

// Connection returns the entries of hooks.json, of the user or of a project.
func (Adapter) Connection(h foreign.Host, c foreign.Connect) ([]foreign.Change, error) {
	events := append([]hooks.Subscription{{Event: "Interrupt"}}, hooks.Usual()...)
	for i := range events {
		events[i].Timeout = 10 * time.Second
		if slices.Contains(limited, events[i].Event) {
			events[i].Timeout = 3 * time.Second
		}
	}
	change, err := hooks.Change(hooksPath(h, c), c, hooks.Style{Unit: time.Second, AllTools: "*"}, events)
	change.Note = note
	return []foreign.Change{change}, err
}

// settingsDir is the directory of the user's settings or of a project's.
func settingsDir(h foreign.Host, c foreign.Connect) string {
	if c.Project != "" {
		return filepath.Join(c.Project, ".codex")
	}
	return home(h)
}

func hooksPath(h foreign.Host, c foreign.Connect) string {
	return filepath.Join(settingsDir(h, c), hooksFile)
}

// Tools returns a table of the settings.
func (Adapter) Tools(h foreign.Host, c foreign.Connect) ([]foreign.Change, error) {
	return servers.Table(filepath.Join(settingsDir(h, c), configFile), "mcp_servers", c)
}
