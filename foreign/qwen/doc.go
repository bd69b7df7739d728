// Package qwen is the adapter for Qwen Code. It promises to read the sessions that Qwen
// Code keeps below its directory, to make cut copies that `qwen --resume` continues, and to
// describe the hooks by which Qwen Code reports what it does.
//
//	a := qwen.New()
//	for s, err := range a.Sessions(ctx, host) {
//		...
//		for turn, err := range a.Turns(ctx, s, "") {
//
// A session is one file of JSON lines, each of which names its parent. A turn is
// identified by the uuid of its prompt. Qwen Code records only the result of a
// subagent, not what it did. Lines of types that the package does not know are
// skipped.
package qwen

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/internal/hooks"
	"github.com/stet-dev/stet/foreign/internal/npm"
	"github.com/stet-dev/stet/foreign/internal/servers"
)

// Name is the name of the agent.
const Name = "qwen"

// Adapter is the adapter for Qwen Code.
type Adapter struct{}

var _ foreign.Adapter = Adapter{}

// New returns the adapter.
func New() Adapter { return Adapter{} }

// Name returns "qwen".
func (Adapter) Name() string { return Name }

// dir is where Qwen Code keeps its files.
func dir(h foreign.Host) string { return filepath.Join(h.Home, ".qwen") }

// Detect looks for the program and its directory.
func (Adapter) Detect(_ context.Context, h foreign.Host) (foreign.Installation, error) {
	in := foreign.Installation{Program: h.Program("qwen"), Settings: filepath.Join(dir(h), "settings.json")}
	info, err := os.Stat(dir(h))
	in.Found = in.Program != "" || err == nil && info.IsDir()
	if in.Program != "" {
		in.Version = npm.Version(in.Program, "@qwen-code/qwen-code")
	}
	return in, nil
}

// Connection returns the hooks of the user's settings, or of a project's.
func (Adapter) Connection(h foreign.Host, c foreign.Connect) ([]foreign.Change, error) {
	change, err := hooks.Change(settingsPath(h, c), c, hooks.Style{Unit: time.Millisecond, AllTools: "*"}, hooks.Usual())
	return []foreign.Change{change}, err
}

func settingsPath(h foreign.Host, c foreign.Connect) string {
	if c.Project != "" {
		return filepath.Join(c.Project, ".qwen", "settings.json")
	}
	return filepath.Join(dir(h), "settings.json")
}

// Tools returns a server of the user's settings, or of a project's.
func (Adapter) Tools(h foreign.Host, c foreign.Connect) ([]foreign.Change, error) {
	return servers.Member(settingsPath(h, c), []string{"mcpServers"}, c, func(program string, args []string) any {
		return servers.Server{Command: program, Args: args}
	})
}

// Skips returns "": nothing is known to prevent Qwen Code from running its hooks.
func (Adapter) Skips(foreign.Host, foreign.Connect) (string, error) { return "", nil }

// Event decodes a hook's payload. Qwen Code reports a prompt without text after each round
// of tools: that is not the start of a turn. Its ids of calls are not those of the
// transcript.
func (Adapter) Event(name string, payload []byte) (foreign.Event, error) {
	p, err := hooks.Decode(payload)
	if err != nil {
		return foreign.Event{}, err
	}
	e := p.Event(hooks.Kind(name), payload)
	e.Subagent = p.Agent
	if e.Kind == foreign.TurnStart && p.Prompt == "" {
		e.Kind = foreign.NoEvent
	}
	if e.Kind == foreign.ToolStart || e.Kind == foreign.ToolEnd {
		call := newCall(p.ToolID, p.Tool, p.Input)
		call.Answered = e.Kind == foreign.ToolEnd
		call.Failed = name == "PostToolUseFailure"
		e.Call = &call
	}
	return e, nil
}

// Notice adds a line to the context of a prompt.
func (Adapter) Notice(text string) []byte { return hooks.Notice("UserPromptSubmit", text) }
