package pi

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/stet-dev/stet/foreign"
)

// extension runs a command at pi's events. It needs nothing but Node, catches every error
// and stops waiting after a bound; the command then goes on alone.
//
//go:embed extension.ts
var extension []byte

func extensionPath(h foreign.Host, project string) string {
	if project != "" {
		return filepath.Join(project, ".pi", "extensions", "stet.ts")
	}
	return filepath.Join(agentDir(h), "extensions", "stet.ts")
}

// Connection returns the extension as one file of our own.
func (*Adapter) Connection(h foreign.Host, c foreign.Connect) ([]foreign.Change, error) {
	if len(c.Command) == 0 {
		return nil, fmt.Errorf("%w: no command", foreign.ErrSettings)
	}
	command, err := json.Marshal(c.Words())
	if err != nil {
		return nil, err
	}
	content := bytes.Replace(extension, []byte(`["stet", "hook", "pi"]`), command, 1)
	return []foreign.Change{{Path: extensionPath(h, c.Project), Content: content}}, nil
}

// Tools returns nil: pi has no servers of the Model Context Protocol.
func (*Adapter) Tools(foreign.Host, foreign.Connect) ([]foreign.Change, error) { return nil, nil }

// Skips returns "": pi runs every extension that it finds.
func (*Adapter) Skips(foreign.Host, foreign.Connect) (string, error) { return "", nil }
