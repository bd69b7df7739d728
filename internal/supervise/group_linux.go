package supervise

import (
	"errors"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// ownGroup starts a command as the first process of a group that ends with this process.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// wait waits for a command, and ends what it left of its group while no other process can
// have its number.
func (m *members) wait(cmd *exec.Cmd) error {
	for errors.Is(unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
	}
	m.end(true)
	return cmd.Wait()
}
