// Package agents lists the adapters, one for each agent that stet supports. It
// promises that every name on the command line and in conversations leads to the
// adapter that reads it. The editor Cursor has a name here but no adapter: package
// cursorimport copies its states and checkpoints unchanged, which is more than turns.
package agents

import (
	"fmt"
	"slices"
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

// Cursor is the name of the editor, whose conversations can only be imported.
const Cursor = "cursor"

// Importable returns the names of all programs whose conversations can be imported, sorted.
func Importable() []string {
	names := append(Names(), Cursor)
	slices.Sort(names)
	return names
}

// Names returns the names of all agents that have an adapter, sorted.
func Names() []string {
	var names []string
	for _, a := range All() {
		names = append(names, a.Name())
	}
	return names
}

// Find returns the adapter with a name. The error names the one that was probably meant,
// or lists all.
func Find(name string) (foreign.Adapter, error) { return find(name, Names()) }

// FindImportable is Find where conversations are imported: its errors also name the
// programs that can only be imported, although these have no adapter.
func FindImportable(name string) (foreign.Adapter, error) { return find(name, Importable()) }

func find(name string, accepted []string) (foreign.Adapter, error) {
	for _, a := range All() {
		if a.Name() == name {
			return a, nil
		}
	}
	if name == Cursor {
		return nil, fmt.Errorf("%w: 'stet import --from %s' copies what it keeps; stet has no hooks for it and does not continue its conversations", foreign.ErrImportOnly, Cursor)
	}
	if near := nearest(name, accepted); near != "" {
		return nil, fmt.Errorf("%w %q; did you mean %q?", foreign.ErrUnknownAgent, name, near)
	}
	return nil, fmt.Errorf("%w %q; stet supports %s", foreign.ErrUnknownAgent, name, strings.Join(accepted, ", "))
}
