// Package qwen is the adapter for Qwen Code. It promises to read the sessions that Qwen
// Code keeps below its directory, to make cut copies that `qwen --resume` continues, and to
// describe the hooks by which Qwen Code reports what it does.
//
//	a := qwen.New()
//	for s, err := range a.Sessions(ctx, host) {
//		...
//		for turn, err := range a.Turns(ctx, s, "") {
//
// A session is one file of JSON lines, each of which names its parent. A turn is known by
// the uuid of its prompt. What a subagent did is not recorded by Qwen Code but for its
// result. Lines of types that the package does not know are skipped.
package qwen

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/internal/hooks"
	"github.com/stet-dev/stet/foreign/internal/npm"
)

// Name is the name of the agent.
const Name = "qwen"

// Adapter knows Qwen Code.
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
	if len(c.Command) == 0 {
		return nil, fmt.Errorf("%w: no command", foreign.ErrSettings)
	}
	path := filepath.Join(dir(h), "settings.json")
	if c.Project != "" {
		path = filepath.Join(c.Project, ".qwen", "settings.json")
	}
	const quick, long = 10 * time.Second, 30 * time.Second
	return []foreign.Change{{Path: path, Hooks: hooks.Entries(c, time.Millisecond,
		hooks.Subscription{Event: "SessionStart", Timeout: quick},
		hooks.Subscription{Event: "UserPromptSubmit", Timeout: long},
		hooks.Subscription{Event: "PreToolUse", Matcher: true, Timeout: quick},
		hooks.Subscription{Event: "PostToolUse", Matcher: true, Timeout: quick},
		hooks.Subscription{Event: "SubagentStart", Timeout: quick},
		hooks.Subscription{Event: "SubagentStop", Timeout: quick},
		hooks.Subscription{Event: "Stop", Timeout: long},
		hooks.Subscription{Event: "SessionEnd", Timeout: quick},
	)}}, nil
}

var kinds = map[string]foreign.EventKind{
	"SessionStart":       foreign.SessionStart,
	"UserPromptSubmit":   foreign.TurnStart,
	"PreToolUse":         foreign.ToolStart,
	"PostToolUse":        foreign.ToolEnd,
	"PostToolUseFailure": foreign.ToolEnd,
	"SubagentStart":      foreign.TaskStart,
	"SubagentStop":       foreign.TaskEnd,
	"Stop":               foreign.TurnEnd,
	"SessionEnd":         foreign.SessionEnd,
}

// Event decodes a hook's payload. Qwen Code reports a prompt without text after each round
// of tools: that is not the start of a turn. Its ids of calls are not those of the
// transcript.
func (Adapter) Event(name string, payload []byte) (foreign.Event, error) {
	p, err := hooks.Decode(payload)
	if err != nil {
		return foreign.Event{}, err
	}
	e := p.Event(kinds[name], payload)
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
