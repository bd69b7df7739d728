package gemini

import (
	"time"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/internal/hooks"
	"github.com/stet-dev/stet/foreign/internal/servers"
)

// Connection returns the hooks of the settings. The CLI runs them in a shell; a command that
// is not found ends the turn before the model is called. BeforeModel and AfterModel carry
// the whole conversation and are not requested.
func (*Adapter) Connection(h foreign.Host, c foreign.Connect) ([]foreign.Change, error) {
	const quick, long = 5 * time.Second, 10 * time.Second
	style := hooks.Style{Unit: time.Millisecond, AllTools: ".*", Named: true, Survives: true}
	change, err := hooks.Change(settingsPath(h, c.Project), c, style, []hooks.Subscription{
		{Event: "SessionStart", Timeout: quick},
		{Event: "BeforeAgent", Timeout: long},
		{Event: "BeforeTool", Timeout: quick, Tools: true},
		{Event: "AfterTool", Timeout: quick, Tools: true},
		{Event: "AfterAgent", Timeout: long},
		{Event: "SessionEnd", Timeout: quick},
	})
	return []foreign.Change{change}, err
}

// Tools returns a server of the user's settings, or of a project's.
func (*Adapter) Tools(h foreign.Host, c foreign.Connect) ([]foreign.Change, error) {
	return servers.Member(settingsPath(h, c.Project), []string{"mcpServers"}, c, func(program string, args []string) any {
		return servers.Server{Command: program, Args: args}
	})
}

// Skips returns "": nothing is known to prevent the CLI from running its hooks.
func (*Adapter) Skips(foreign.Host, foreign.Connect) (string, error) { return "", nil }
