//go:build unix

package realagents

import (
	"os/exec"
	"syscall"
)

// ownGroup makes a command the leader of a process group.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// killGroup ends what a command left behind.
func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

// Signal sends a signal to the agent and what it started, as a terminal does.
func (r *Run) Signal(sig syscall.Signal) error { return syscall.Kill(-r.Cmd.Process.Pid, sig) }
