// Package agents lists the adapters: one for each agent that stet knows. It promises that
// every name on the command line and in conversations leads to the adapter that reads it.
package agents

import (
	"fmt"
	"strings"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/claudecode"
	"github.com/stet-dev/stet/foreign/codex"
	"github.com/stet-dev/stet/foreign/copilot"
	"github.com/stet-dev/stet/foreign/gemini"
	"github.com/stet-dev/stet/foreign/opencode"
	"github.com/stet-dev/stet/foreign/pi"
	"github.com/stet-dev/stet/foreign/qwen"
)

// All returns the adapters, by name.
func All() []foreign.Adapter {
	return []foreign.Adapter{
		claudecode.New(),
		codex.New(),
		copilot.New(),
		gemini.New(),
		opencode.New(),
		pi.New(),
		qwen.New(),
	}
}

// Names returns the names of all agents, sorted.
func Names() []string {
	var names []string
	for _, a := range All() {
		names = append(names, a.Name())
	}
	return names
}

// Find returns the adapter with a name. The error names the one that was
// probably meant, or lists all.
func Find(name string) (foreign.Adapter, error) {
	for _, a := range All() {
		if a.Name() == name {
			return a, nil
		}
	}
	if near := nearest(name); near != "" {
		return nil, fmt.Errorf("%w %q; did you mean %q?", foreign.ErrUnknownAgent, name, near)
	}
	return nil, fmt.Errorf("%w %q; stet knows %s", foreign.ErrUnknownAgent, name, strings.Join(Names(), ", "))
}
