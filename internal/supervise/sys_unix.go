//go:build unix

package supervise

import (
	"os"
	"os/exec"
	"syscall"
)

// handedOn are the signals that a command gets.
var handedOn = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2}

// separators are the characters that make a name a path.
const separators = "/"

// processes are those of a command. Signals go to the first one, as from a shell.
type processes struct{ first *os.Process }

func start(cmd *exec.Cmd, _ bool) (*processes, error) {
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &processes{cmd.Process}, nil
}

func (p *processes) signal(sig os.Signal) { _ = p.first.Signal(sig) } // it may have ended just now

func (p *processes) close() {}

// asShells returns the exit code of a command that no signal ended.
func asShells(state *os.ProcessState) int { return state.ExitCode() }
