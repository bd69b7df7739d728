//go:build unix

package supervise

import (
	"os"
	"os/exec"
	"syscall"
)

// members are the processes of a group.
type members struct{ leader *os.Process }

func (m *members) start(cmd *exec.Cmd) error {
	cmd.SysProcAttr = ownGroup()
	err := cmd.Start()
	m.leader = cmd.Process
	return err
}

// end asks the processes of a group to end, or ends them.
func (m *members) end(kill bool) {
	sig := syscall.SIGTERM
	if kill {
		sig = syscall.SIGKILL
	}
	_ = syscall.Kill(-m.leader.Pid, sig) // they may have ended just now
}

func (m *members) close() {}
