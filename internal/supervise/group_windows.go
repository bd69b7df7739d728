package supervise

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/windows"
)

// members are the processes of a group: those of a job, which the system ends when this
// process ends.
type members struct{ *processes }

func (m *members) start(cmd *exec.Cmd) (err error) {
	m.processes, err = startInJob(cmd, true, windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE)
	return err
}

// end asks the processes to end, as Ctrl-Break does, or ends them.
func (m *members) end(kill bool) {
	if !kill && windows.GenerateConsoleCtrlEvent(windows.CTRL_BREAK_EVENT, m.group) == nil {
		return
	}
	sig := syscall.SIGTERM
	if kill {
		sig = syscall.SIGKILL
	}
	m.terminate(128 + uint32(sig))
}

// wait waits for a command, and ends what it left running, which may hold its pipes.
func (m *members) wait(cmd *exec.Cmd) error {
	if _, err := windows.WaitForSingleObject(m.first, windows.INFINITE); err == nil && m.job != 0 {
		m.terminate(128 + uint32(syscall.SIGKILL)) // those that are left
	}
	return cmd.Wait()
}
