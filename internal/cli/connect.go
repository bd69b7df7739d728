package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/agents"
	"github.com/stet-dev/stet/foreign/connect"
	"github.com/stet-dev/stet/linediff"
)

type connectFlags struct {
	project, list, sure, noImport, mcp bool
}

func (a *app) connectCommand() *cobra.Command {
	var flags connectFlags
	cmd := &cobra.Command{
		Use:     "connect [AGENT…]",
		Short:   "Let coding agents report their turns to stet",
		GroupID: groupStart,
		Long: `Let coding agents report their turns. stet then makes a checkpoint before and after
each turn of an agent, and stores what was said. Without AGENT it connects all agents
that it finds on this computer; it shows the changes and asks first.

stet adds entries to the agents' settings. Everything else in them stays byte for
byte, and a copy of the file is kept beside it. Connecting again changes nothing.
'stet disconnect' removes the entries.

Then stet offers to import the agents' earlier sessions ('stet import'). -y imports them
without asking; --no-import and --project do not import them. Once you have agreed, stet
also imports missing sessions once a day, when a session begins, before agents delete them.

--mcp also registers 'stet mcp' with the agents that can start such servers. An agent
can then look at its history and take back its own work. A server named stet that you
registered yourself is not changed.

--list shows which agents are connected, when their last event came, and what to do if
an agent does not run the entries.`,
		Example:           "  stet connect\n  stet connect claude-code --mcp -y\n  stet connect --list",
		ValidArgsFunction: cobra.FixedCompletions(agents.Names(), cobra.ShellCompDirectiveNoFileComp),
		Args:              cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			found, err := a.lookAtAgents(cmd.Context(), args, flags)
			if err != nil {
				return err
			}
			if flags.list {
				return a.printAgents(found)
			}
			return a.connectAgents(cmd.Context(), found, len(args) > 0, flags)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&flags.project, "project", false, "change the settings of this project instead of yours")
	f.BoolVar(&flags.noImport, "no-import", false, "do not offer to import the agents' earlier sessions")
	f.BoolVar(&flags.mcp, "mcp", false, "also give the agents the tools of 'stet mcp'")
	f.BoolVar(&flags.list, "list", false, "show the agents and whether they are connected")
	f.BoolVarP(&flags.sure, "yes", "y", false, "do not ask")
	return cmd
}

func (a *app) disconnectCommand() *cobra.Command {
	var flags connectFlags
	cmd := &cobra.Command{
		Use:     "disconnect [AGENT…]",
		Short:   "Remove stet from the settings of coding agents",
		GroupID: groupStart,
		Long: `Remove everything that 'stet connect' added to the settings of coding agents. The
files are then the same as before, byte for byte, except for changes that others made
since. The recorded history stays in the store.`,
		Example:           "  stet disconnect\n  stet disconnect claude-code -y",
		ValidArgsFunction: cobra.FixedCompletions(agents.Names(), cobra.ShellCompDirectiveNoFileComp),
		Args:              cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			found, err := a.lookAtAgents(cmd.Context(), args, flags)
			if err != nil {
				return err
			}
			return a.disconnectAgents(cmd.Context(), found, flags)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&flags.project, "project", false, "change the settings of this project instead of yours")
	f.BoolVarP(&flags.sure, "yes", "y", false, "do not ask")
	return cmd
}

// lookAtAgents looks at the named agents, or at all.
func (a *app) lookAtAgents(ctx context.Context, names []string, flags connectFlags) ([]connect.Agent, error) {
	adapters := agents.All()
	if len(names) > 0 {
		adapters = nil
		for _, name := range names {
			adapter, err := agents.Find(name)
			if err != nil {
				return nil, usage(err)
			}
			adapters = append(adapters, adapter)
		}
	}
	opts, err := a.connectOptions(flags.project)
	if err != nil {
		return nil, err
	}
	opts.WithTools = flags.mcp
	var out []connect.Agent
	for _, adapter := range adapters {
		agent, err := connect.Look(ctx, adapter, opts)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", adapter.Name(), err)
		}
		out = append(out, agent)
	}
	return out, nil
}

// connectOptions names this program and, if it is not the default, the store.
func (a *app) connectOptions(project bool) (connect.Options, error) {
	program, err := os.Executable()
	if err != nil {
		return connect.Options{}, err
	}
	host, err := foreign.ThisHost()
	if err != nil {
		return connect.Options{}, err
	}
	opts := connect.Options{Host: host, Command: []string{hookClient(program)}, Tools: []string{program}}
	if a.store != "" {
		store := a.store
		if dir, err := a.storeDir(); err == nil {
			if store, err = filepath.Abs(dir); err != nil {
				return connect.Options{}, err
			}
		}
		opts.Command, opts.Tools = append(opts.Command, "--store", store), append(opts.Tools, "--store", store)
	}
	opts.Tools = append(opts.Tools, "mcp")
	opts.Command = append(opts.Command, "hook")
	opts.Dir, err = a.workspaceDir()
	if project {
		if err != nil {
			return connect.Options{}, err
		}
		opts.Project = opts.Dir
	}
	opts.Spool, err = a.hookDir()
	return opts, err
}

// hookProgram is the name of the small program that hooks start faster than stet.
const hookProgram = "stet-hook"

// hookClient returns the program that agents run for events: the small one where it is
// beside stet, else stet.
func hookClient(stet string) string {
	small := filepath.Join(filepath.Dir(stet), hookProgram+filepath.Ext(stet))
	if info, err := os.Stat(small); err != nil || !info.Mode().IsRegular() {
		return stet
	}
	return small
}

type agentJSON struct {
	Schema    string `json:"schema"`
	Agent     string `json:"agent"`
	State     string `json:"state"`
	Why       string `json:"why,omitempty"`
	Program   string `json:"program,omitempty"`
	Version   string `json:"version,omitempty"`
	Settings  string `json:"settings,omitempty"`
	LastEvent string `json:"last_event,omitempty"`
}

func (a *app) printAgents(found []connect.Agent) error {
	for _, agent := range found {
		value := agentJSON{
			Schema: "stet.agent.v1", Agent: agent.Name, State: string(agent.State), Program: agent.Installation.Program,
			Version: agent.Installation.Version, Settings: agent.Installation.Settings, LastEvent: stamp(agent.Last),
		}
		if agent.Why != nil {
			value.Why = agent.Why.Error()
		}
		if err := a.print(value, a.agentLine(agent)); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) agentLine(agent connect.Agent) string {
	p := a.paint()
	state := map[connect.State]func(string) string{connect.Connected: p.green, connect.Blocked: p.yellow, connect.NotFound: p.dim}[agent.State]
	if state == nil {
		state = p.red
	}
	text := fmt.Sprintf("%s  %s  %s", pad(agent.Name, 12), pad(agent.Installation.Version, 10), state(pad(string(agent.State), 13)))
	switch {
	case agent.Why != nil:
		text += "  " + printable(agent.Why.Error())
	case agent.State == connect.Connected && agent.Last.IsZero():
		text += "  no event yet"
	case agent.State == connect.Connected:
		text += "  last event " + when(agent.Last, now())
	case agent.State != connect.NotFound:
		text += "  " + printable(tilde(agent.Installation.Settings))
	}
	return strings.TrimRight(text, " ") + "\n"
}

// connectAgents connects those that are not, after the user has seen the changes.
func (a *app) connectAgents(ctx context.Context, found []connect.Agent, named bool, flags connectFlags) error {
	var wanted []connect.Agent
	var names []string
	for _, agent := range found {
		if flags.mcp && !agent.Tools && (named || agent.State != connect.NotFound) {
			a.say("%s does not start MCP servers here; it can run stet in its shell", agent.Name)
		}
		switch {
		case agent.State == connect.NotFound && !named:
			continue
		case agent.State == connect.Broken:
			a.warn("%s: %v", agent.Name, agent.Why)
			continue
		case agent.State == connect.Connected, agent.State == connect.Blocked:
			if a.say("%s is already connected", agent.Name); agent.Why != nil {
				a.warn("%s: %v", agent.Name, agent.Why)
			}
			if flags.noImport {
				if err := a.declineEarlier(agent.Name); err != nil {
					return err
				}
			}
			continue
		}
		wanted, names = append(wanted, agent), append(names, agent.Name)
	}
	if len(wanted) == 0 {
		return a.noneConnected(found, named)
	}
	if !a.quiet && !a.json {
		for _, agent := range wanted {
			files, err := agent.Preview()
			if err == nil {
				err = a.showFiles(ctx, files)
			}
			if err != nil {
				return err
			}
		}
	}
	if err := a.agreed(ctx, flags.sure, fmt.Sprintf("Connect %s?", strings.Join(names, ", "))); err != nil {
		return err
	}
	var errs []error
	names = nil
	for _, agent := range wanted {
		files, err := agent.Connect()
		if err == nil {
			names = append(names, agent.Name)
		}
		errs = append(errs, err, a.printChanged("connected", agent, files))
		for _, note := range agent.Notes {
			a.say("%s: %s", agent.Name, note)
		}
	}
	errs = append(errs, a.earlierOf(ctx, names, flags))
	return errors.Join(errs...)
}

// noneConnected says why there was nothing to do.
func (a *app) noneConnected(found []connect.Agent, named bool) error {
	for _, agent := range found {
		if agent.State == connect.Connected || agent.State == connect.Blocked {
			return nil
		}
		if agent.State == connect.Broken {
			return silentExit{ExitConflict}
		}
	}
	return coded(ExitNotFound, "no agent found here; stet supports %s; 'stet connect AGENT' connects one that is not installed yet", strings.Join(agents.Names(), ", "))
}

func (a *app) disconnectAgents(ctx context.Context, found []connect.Agent, flags connectFlags) error {
	var wanted []connect.Agent
	var names []string
	var left error // of agents that may still run the entries
	for _, agent := range found {
		switch agent.State {
		case connect.Broken:
			a.warn("%s: %v", agent.Name, agent.Why)
			left = silentExit{ExitConflict}
		case connect.Connected, connect.Blocked, connect.Outdated:
			wanted, names = append(wanted, agent), append(names, agent.Name)
		}
	}
	if len(wanted) == 0 {
		if left == nil {
			a.say("no agent is connected")
		}
		return left
	}
	if err := a.agreed(ctx, flags.sure, fmt.Sprintf("Disconnect %s?", strings.Join(names, ", "))); err != nil {
		return err
	}
	var errs []error
	for _, agent := range wanted {
		files, err := agent.Disconnect()
		errs = append(errs, err, a.printChanged("disconnected", agent, files))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return left
}

type connectJSON struct {
	Schema string   `json:"schema"`
	Agent  string   `json:"agent"`
	Done   string   `json:"done"`
	Files  []string `json:"files"`
	Notes  []string `json:"notes,omitempty"`
}

func (a *app) printChanged(done string, agent connect.Agent, files []connect.File) error {
	value := connectJSON{Schema: "stet.connect.v1", Agent: agent.Name, Done: done, Files: []string{}, Notes: agent.Notes}
	text := fmt.Sprintf("%s  %s  %s", a.paint().green("ok"), pad(agent.Name, 12), done)
	for _, f := range files {
		value.Files = append(value.Files, f.Path)
		text += "  " + printable(tilde(f.Path))
		if f.Backup != "" {
			text += " (backup: " + printable(filepath.Base(f.Backup)) + ")"
		}
	}
	return a.print(value, text+"\n")
}

// showFiles shows changes of settings as a diff.
func (a *app) showFiles(ctx context.Context, files []connect.File) error {
	for _, f := range files {
		lines := bytes.Count(f.After, []byte("\n"))
		if f.Before == nil && lines > 40 {
			a.say("create %s (%s)", tilde(f.Path), plural(int64(lines), "line"))
			continue
		}
		what := "change"
		if f.Before == nil {
			what = "create"
		}
		a.say("%s %s", what, tilde(f.Path))
		compared, err := linediff.Texts(ctx, f.Before, f.After)
		if err != nil {
			return err
		}
		for _, hunk := range compared.Hunks {
			for _, line := range hunk.Lines {
				if line.Op != linediff.Same {
					a.say("  %s %s", line.Op, clip(line.Text, 160))
				}
			}
		}
	}
	return nil
}
