//go:build unix && !linux

package supervise

import (
	"os/exec"
	"syscall"
)

// ownGroup starts a command as the first process of a group.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// wait waits for a command and ends what it left of its group.
func (m *members) wait(cmd *exec.Cmd) error {
	err := cmd.Wait()
	m.end(true)
	return err
}
