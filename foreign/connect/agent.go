package connect

import (
	"context"
	"errors"
	"time"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/spool"
)

// State is whether an agent reports its events.
type State string

// The states of an agent.
const (
	// NotFound means that the agent is not on this computer.
	NotFound State = "not found"
	// NotConnected means that it is there and does not report.
	NotConnected State = "not connected"
	// Connected means that it reports.
	Connected State = "connected"
	// Outdated means that its settings run another command than they should, such as a
	// stet that was moved or that of an earlier release.
	Outdated State = "outdated"
	// Broken means that its settings cannot be changed. Why says it.
	Broken State = "broken"
)

// Agent is an agent as it is found.
type Agent struct {
	Name         string
	Installation foreign.Installation
	State        State
	// Why explains Broken.
	Why error
	// Last is when the last event came, zero if none did.
	Last time.Time
	// Notes are what the user has to do besides.
	Notes []string

	changes []foreign.Change
	made    made // directories that connecting made
}

// Options say how agents report.
type Options struct {
	Host foreign.Host
	// Command is the program with its first arguments; the agent's name and the event
	// follow.
	Command []string
	// Project, if not "", is the directory whose settings are used instead of the user's.
	Project string
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
	command := append(append([]string{}, o.Command...), a.Name())
	if out.changes, err = a.Connection(o.Host, foreign.Connect{Command: command, Project: o.Project}); err != nil {
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
	return out, nil
}

// File is what happens, or has happened, to a file.
type File struct {
	Path string
	// Before and After are the content; nil means that there is no file.
	Before, After []byte
	// Backup is the copy that was made of the file as it was, or "".
	Backup string
}

// Preview returns what Connect would change.
func (a Agent) Preview() ([]File, error) { return a.each(Plan) }

// Connect makes the agent report its events.
func (a Agent) Connect() ([]File, error) {
	if err := a.made.note(a.changes); err != nil {
		return nil, err
	}
	return a.each(Apply)
}

// Disconnect takes everything of ours out of the agent's settings, and removes the
// directories that Connect made and that are empty.
func (a Agent) Disconnect() ([]File, error) {
	files, err := a.each(Revert)
	return files, errors.Join(err, a.made.remove(a.changes))
}

// each applies a step to all files, and returns those that it changed.
func (a Agent) each(step func(foreign.Change) (Result, error)) ([]File, error) {
	var files []File
	var errs []error
	for _, c := range a.changes {
		r, err := step(c)
		if err == nil && r.Changed() {
			files = append(files, File{Path: c.Path, Before: r.Before, After: r.After, Backup: r.Backup})
		}
		errs = append(errs, err)
	}
	return files, errors.Join(errs...)
}
