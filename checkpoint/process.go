package checkpoint

import (
	"fmt"
	"strings"
)

// Process identifies a process uniquely, even after its number was reused or the
// system was restarted.
type Process struct {
	PID int
	// Start is when it started, in ticks since the system's start.
	Start uint64
	// Boot is the random id of the system's start, and Namespace the namespace of
	// PID.
	Boot, Namespace string
	// Command is for people.
	Command string
}

// same reports whether two descriptions are of one process.
func (p Process) same(other Process) bool {
	p.Command = other.Command
	return p == other
}

// Life is whether a process is running.
type Life int

// The values of Life.
const (
	// Unknown: it is out of sight, as in another container.
	Unknown Life = iota
	// Alive: it is running.
	Alive
	// Gone: it has ended.
	Gone
)

// ProcessOf identifies a running process, or one that has ended and was not waited
// for. It returns false if there is no such process, or if this system does not support
// that.
func ProcessOf(pid int, command string) (Process, bool) {
	p := here()
	if p.Boot == "" || pid <= 0 {
		return Process{}, false
	}
	start, _, err := processStart(pid)
	if err != nil {
		return Process{}, false
	}
	const most = 200
	command = strings.ToValidUTF8(command, "\uFFFD")
	if len(command) > most {
		command = strings.ToValidUTF8(command[:most], "") + "…"
	}
	p.PID, p.Start, p.Command = pid, start, command
	return p, true
}

// HolderOf returns a Holder whose turn ends with a process, for agents that report
// only where a turn begins and ends. It returns ErrNoProcess if the process is not
// running or cannot be identified.
func HolderOf(pid int, command string) (Holder, error) {
	p, ok := ProcessOf(pid, command)
	if !ok || p.Life() != Alive {
		return Holder{}, fmt.Errorf("%w: %d", ErrNoProcess, pid)
	}
	return Holder{Processes: []Process{p}}, nil
}

// Life reports whether the process is running.
func (p Process) Life() Life {
	me := here()
	switch {
	case me.Boot == "" || p.Boot == "":
		return Unknown
	case p.Boot != me.Boot:
		return Gone // the system was restarted, or it is another process
	case p.Namespace != me.Namespace:
		return Unknown
	}
	start, ended, err := processStart(p.PID)
	switch {
	case isNotExist(err):
		return Gone
	case err != nil:
		return Unknown
	case ended || start != p.Start:
		return Gone
	}
	return Alive
}
