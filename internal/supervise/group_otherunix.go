//go:build unix && !linux

package supervise

import (
	"os/exec"
	"syscall"
)

// ownGroup starts a command as the first process of a group.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// waitGroup waits for a command and ends what it left of its group.
func waitGroup(cmd *exec.Cmd) error {
	err := cmd.Wait()
	signalGroup(cmd.Process, true)
	return err
}
