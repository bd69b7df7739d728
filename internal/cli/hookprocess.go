package cli

import (
	"os"
	"slices"
	"strconv"

	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/spool"
)

// hookBehind finishes an event in a process of its own, so that the agent goes on: one
// that took too long (--late), or one whose words are not recorded yet (--words). What is
// changed meanwhile may be in a late checkpoint.
func (a *app) hookBehind(flag, agent, event string, payload []byte) error {
	store, err := a.lastingPlace()
	if err != nil {
		return err
	}
	// A file without a name: it is gone with the last process that has it open.
	in, err := os.CreateTemp("", "stet-hook-")
	if err != nil {
		return err
	}
	defer in.Close()
	if err := os.Remove(in.Name()); err != nil {
		return err
	}
	if _, err := in.Write(payload); err != nil {
		return err
	}
	if _, err := in.Seek(0, 0); err != nil {
		return err
	}
	return a.behind(store, in, agentVariable+"="+strconv.Itoa(agentPID()), "hook", flag, agent, event)
}

// agentVariable says a late hook which process the agent is.
const agentVariable = "STET_HOOK_AGENT"

// agentProcess identifies the agent that runs this hook.
func agentProcess(name string) []checkpoint.Process {
	pid := agentPID()
	if given, err := strconv.Atoi(os.Getenv(agentVariable)); err == nil && given > 0 {
		pid = given
	}
	if p, ok := checkpoint.ProcessOf(pid, name); ok {
		return []checkpoint.Process{p}
	}
	return nil
}

// keepProcess keeps which process has a session open, so that it is known between turns,
// too. Events inside a turn do not come here.
func keepProcess(session *spool.Spool, agent string, e foreign.Event) error {
	if e.Subagent != "" || e.Kind != foreign.SessionStart && e.Kind != foreign.TurnStart && e.Kind != foreign.SessionEnd {
		return nil
	}
	processes := agentProcess(agent)
	switch {
	case len(processes) == 0:
		return nil
	case e.Kind == foreign.SessionEnd:
		return session.SetClosed(processes[0])
	}
	return session.SetOpen(spool.OpenSession{Agent: agent, Session: e.Session, Workspace: e.Workspace, Process: processes[0]})
}

// shells are programs that run hooks for an agent and end with the hook.
var shells = []string{"sh", "bash", "dash", "zsh", "ash", "ksh", "fish", "busybox", "cmd", "powershell", "pwsh", hookProgram}

// agentPID is the nearest process above this one that is neither a shell nor the hook
// client, or 0 if there is none to be found: agents run hooks in a shell that ends with the
// hook.
func agentPID() int {
	pid := os.Getppid()
	for range 4 {
		name, above, err := processAbove(pid)
		if err != nil || !slices.Contains(shells, name) {
			break
		}
		if above == 1 { // the agent is gone, or is the first process
			break
		}
		pid = above
	}
	return pid
}
