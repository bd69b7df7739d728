package connect

import (
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/spool"
)

// State is whether an agent reports its events.
type State string

// The states of an agent.
const (
	// NotFound means that the agent is not installed on this computer.
	NotFound State = "not found"
	// NotConnected means that it is installed but does not report.
	NotConnected State = "not connected"
	// Connected means that it reports.
	Connected State = "connected"
	// Outdated means that its settings run the wrong command, such as a stet that was
	// moved or one of an earlier release.
	Outdated State = "outdated"
	// Blocked means that its settings are right but the agent does not report until its
	// user has done what Why says.
	Blocked State = "blocked"
	// Broken means that its settings cannot be changed; see Why.
	Broken State = "broken"
)

// Agent is the present state of an agent.
type Agent struct {
	Name         string
	Installation foreign.Installation
	State        State
	// Why explains Blocked and Broken.
	Why error
	// Last is when the last event came, zero if none did.
	Last time.Time
	// Notes are what else the user has to do.
	Notes []string
	// Tools means that the agent can start servers of tools.
	Tools bool

	changes []foreign.Change
	made    made // directories that connecting made
}

// Options configure how agents report.
type Options struct {
	Host foreign.Host
	// Command is the program with its first arguments; the agent's name and the event
	// follow.
	Command []string
	// Tools is the command of a server of tools for agents, and WithTools means that
	// agents that support it get one. An existing one is kept up to date.
	Tools     []string
	WithTools bool
	// Project, if not "", is the directory whose settings are used instead of the user's.
	Project string
	// Dir is a directory whose own settings may disable the hooks, or "".
	Dir string
	// Spool is the directory in which events arrive.
	Spool string
}

// Look returns the state of an agent. It changes nothing and runs no program.
func Look(ctx context.Context, a foreign.Adapter, o Options) (Agent, error) {
	out := Agent{Name: a.Name(), State: NotFound, Last: spool.LastOf(o.Spool, a.Name()), made: madeIn(o.Spool)}
	var err error
	if out.Installation, err = a.Detect(ctx, o.Host); err != nil {
		return out, err
	}
	calls := foreign.Connect{Command: append(slices.Clone(o.Command), a.Name()), Project: o.Project, Dir: o.Dir}
	if out.changes, err = a.Connection(o.Host, calls); err != nil {
		return out, err
	}
	hooks := out.changes
	if err := out.withTools(a, o); err != nil {
		return out, err
	}
	applied, present := 0, 0
	for _, c := range out.changes {
		if c.Note != "" {
			out.Notes = append(out.Notes, c.Note)
		}
		forward, err := Plan(c)
		if err != nil {
			out.State, out.Why = Broken, err
			return out, nil
		}
		back, err := PlanRevert(c)
		if err != nil {
			out.State, out.Why = Broken, err
			return out, nil
		}
		if !forward.Changed() {
			applied++
		}
		if back.Changed() {
			present++
		}
	}
	switch {
	case applied == len(out.changes):
		out.State = Connected
	case present > 0:
		out.State = Outdated
	case out.Installation.Found:
		out.State = NotConnected
	}
	out.off(a, o.Host, calls)
	if out.State == Connected {
		out.skips(a, o.Host, calls, hooks)
	}
	return out, nil
}

// withTools adds the changes that give the agent tools, if they are wanted or already
// exist.
func (a *Agent) withTools(adapter foreign.Adapter, o Options) error {
	if len(o.Tools) == 0 {
		return nil
	}
	server := foreign.Connect{Command: append(slices.Clone(o.Tools), "--agent="+adapter.Name()), Project: o.Project}
	changes, err := adapter.Tools(o.Host, server)
	if err != nil {
		return err
	}
	a.Tools = len(changes) > 0
	wanted := o.WithTools
	for _, c := range changes {
		back, err := PlanRevert(c)
		wanted = wanted || err == nil && back.Changed()
	}
	if wanted {
		a.changes = merge(a.changes, changes)
	}
	return nil
}

// merge adds changes. Those of one JSON file become one.
func merge(changes, more []foreign.Change) []foreign.Change {
	out := slices.Clone(changes)
	for _, c := range more {
		i := slices.IndexFunc(out, func(o foreign.Change) bool { return o.Path == c.Path && o.Hooks != nil && c.Hooks != nil })
		if i < 0 {
			out = append(out, c)
			continue
		}
		out[i].Hooks = slices.Concat(out[i].Hooks, c.Hooks)
	}
	return out
}

// off determines whether a setting disables the hooks. Before they are connected that is a
// note.
func (a *Agent) off(adapter foreign.Adapter, h foreign.Host, calls foreign.Connect) {
	switched, ok := adapter.(foreign.Switched)
	if !ok {
		return
	}
	why := switched.Off(h, calls)
	switch {
	case why == "":
	case a.State == Connected:
		a.State, a.Why = Blocked, errors.New(why)
	default:
		a.Notes = append(a.Notes, why)
	}
}

// skips determines whether the agent runs its hooks. An event since they were written
// shows that it does.
func (a *Agent) skips(adapter foreign.Adapter, h foreign.Host, calls foreign.Connect, hooks []foreign.Change) {
	if !slices.ContainsFunc(hooks, func(c foreign.Change) bool {
		info, err := os.Stat(c.Path)
		return err != nil || !a.Last.After(info.ModTime())
	}) {
		return
	}
	why, err := adapter.Skips(h, calls)
	if err == nil && why != "" {
		err = errors.New(why)
	}
	if err != nil {
		a.State, a.Why = Blocked, err
	}
}

// File is a change, planned or made, of a file.
type File struct {
	Path string
	// Before and After are the content; nil means that there is no file.
	Before, After []byte
	// Backup is the copy that was made of the original file, or "".
	Backup string
}

// Preview returns what Connect would change.
func (a Agent) Preview() ([]File, error) { return each(a.changes, Plan) }

// Connect makes the agent report its events.
func (a Agent) Connect() ([]File, error) {
	if err := a.made.note(a.changes); err != nil {
		return nil, err
	}
	return each(a.changes, Apply)
}

// Disconnect removes everything of ours from the agent's settings, and the
// directories that Connect made if they are empty.
func (a Agent) Disconnect() ([]File, error) {
	back := slices.Clone(a.changes)
	slices.Reverse(back)
	files, err := each(back, Revert)
	return files, errors.Join(err, a.made.remove(a.changes))
}

// each applies a step to all files, and returns those that it changed.
func each(changes []foreign.Change, step func(foreign.Change) (Result, error)) ([]File, error) {
	var files []File
	var errs []error
	for _, c := range changes {
		r, err := step(c)
		if err == nil && r.Changed() {
			files = append(files, File{Path: c.Path, Before: r.Before, After: r.After, Backup: r.Backup})
		}
		errs = append(errs, err)
	}
	return files, errors.Join(errs...)
}
