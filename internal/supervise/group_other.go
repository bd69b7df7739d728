//go:build !unix

package supervise

import (
	"os"
	"os/exec"
	"syscall"
)

// ownGroup changes nothing: there are no groups.
func ownGroup() *syscall.SysProcAttr { return nil }

// signalGroup ends the command itself.
func signalGroup(leader *os.Process, _ bool) { _ = leader.Kill() } // it may have ended just now

// waitGroup waits for the command.
func waitGroup(cmd *exec.Cmd) error { return cmd.Wait() }
