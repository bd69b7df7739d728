package codex

import (
	"path/filepath"
	"slices"
	"time"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/internal/hooks"
)

const hooksFile = "hooks.json"

// note is what the user has to do: Codex skips hooks that its user did not approve.
const note = "run /hooks in codex once and approve them: codex asks you, and skips hooks that you did not approve"

// limited are the events that Codex ends after 3 seconds.
var limited = []string{"SessionEnd", "Interrupt"}

// Connection returns the entries of hooks.json, of the user or of a project.
func (Adapter) Connection(h foreign.Host, c foreign.Connect) ([]foreign.Change, error) {
	dir := home(h)
	if c.Project != "" {
		dir = filepath.Join(c.Project, ".codex")
	}
	events := append([]hooks.Subscription{{Event: "Interrupt"}}, hooks.Usual()...)
	for i := range events {
		events[i].Timeout = 10 * time.Second
		if slices.Contains(limited, events[i].Event) {
			events[i].Timeout = 3 * time.Second
		}
	}
	change, err := hooks.Change(filepath.Join(dir, hooksFile), c, hooks.Style{Unit: time.Second, AllTools: "*"}, events)
	change.Note = note
	return []foreign.Change{change}, err
}
