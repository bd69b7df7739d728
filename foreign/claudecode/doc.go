// Package claudecode is the adapter for Claude Code. It promises to read the sessions
// that Claude Code keeps below its configuration directory, with their subagents, forks
// and compactions, to make cut copies that `claude --resume` continues, and to describe
// the hooks by which Claude Code reports what it does.
//
//	a := claudecode.New()
//	for s, err := range a.Sessions(ctx, host) {
//		...
//		for turn, err := range a.Turns(ctx, s, "") {
//
// A session is one file of JSON lines, which form a tree: each line names its parent.
// A turn is identified by the uuid of its prompt, which forks keep. Lines of types
// that the package does not know are skipped; the raw record has them.
package claudecode

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/internal/hooks"
	"github.com/stet-dev/stet/foreign/internal/npm"
	"github.com/stet-dev/stet/foreign/internal/servers"
	"github.com/stet-dev/stet/foreign/internal/settings"
)

// Name is the name of the agent.
const Name = "claude-code"

// Adapter is the adapter for Claude Code.
type Adapter struct{}

var _ foreign.Adapter = Adapter{}

// New returns the adapter.
func New() Adapter { return Adapter{} }

// Name returns "claude-code".
func (Adapter) Name() string { return Name }

// dir is where Claude Code keeps its files.
func dir(h foreign.Host) string { return h.Dir("CLAUDE_CONFIG_DIR", ".claude") }

var version = regexp.MustCompile(`^\d+\.\d+\.\d+`)

// Detect looks for the program and its directory.
func (Adapter) Detect(_ context.Context, h foreign.Host) (foreign.Installation, error) {
	in := foreign.Installation{Program: h.Program("claude"), Settings: filepath.Join(dir(h), "settings.json")}
	info, err := os.Stat(dir(h))
	in.Found = in.Program != "" || err == nil && info.IsDir()
	if in.Program == "" {
		return in, nil
	}
	in.Version = npm.Version(in.Program, "@anthropic-ai/claude-code")
	if in.Version == "" { // the native installer links to a file named after its version
		if real, err := filepath.EvalSymlinks(in.Program); err == nil {
			in.Version = version.FindString(filepath.Base(real))
		}
	}
	return in, nil
}

// Connection returns the hooks of the user's settings, or of a project's.
func (Adapter) Connection(h foreign.Host, c foreign.Connect) ([]foreign.Change, error) {
	path := filepath.Join(dir(h), "settings.json")
	if c.Project != "" {
		path = filepath.Join(c.Project, ".claude", "settings.json")
	}
	change, err := hooks.Change(path, c, hooks.Style{Unit: time.Second, AllTools: "*"}, hooks.Usual())
	return []foreign.Change{change}, err
}

// Tools returns a server of the user's state file, or of a project's.
func (Adapter) Tools(h foreign.Host, c foreign.Connect) ([]foreign.Change, error) {
	path := filepath.Join(h.Home, ".claude.json")
	if own := h.Dir("CLAUDE_CONFIG_DIR", ".claude"); own != filepath.Join(h.Home, ".claude") {
		path = filepath.Join(own, ".claude.json")
	}
	if c.Project != "" {
		path = filepath.Join(c.Project, ".mcp.json")
	}
	return servers.Member(path, []string{"mcpServers"}, c, func(program string, args []string) any {
		return servers.Server{Type: "stdio", Command: program, Args: args}
	})
}

// Skips returns "": only the setting of Off is known to disable the hooks.
func (Adapter) Skips(foreign.Host, foreign.Connect) (string, error) { return "", nil }

var _ foreign.Switched = Adapter{}

// Off reports "disableAllHooks". A project's settings override the user's, and its local
// ones override both. Claude Code ignores a file that it cannot read.
func (Adapter) Off(h foreign.Host, c foreign.Connect) string {
	paths := []string{filepath.Join(dir(h), "settings.json")}
	if project := cmp.Or(c.Project, c.Dir); project != "" {
		paths = append(paths, filepath.Join(project, ".claude", "settings.json"), filepath.Join(project, ".claude", "settings.local.json"))
	}
	for _, path := range slices.Backward(paths) {
		data, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		switch value, _ := settings.Value(data, "disableAllHooks"); string(value) {
		case "true":
			return fmt.Sprintf("claude runs no hooks while \"disableAllHooks\" is true in %s", path)
		case "false":
			return ""
		}
	}
	return ""
}
