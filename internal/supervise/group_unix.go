//go:build unix

package supervise

import (
	"os"
	"syscall"
)

// signalGroup asks the processes of a group to end, or ends them.
func signalGroup(leader *os.Process, kill bool) {
	sig := syscall.SIGTERM
	if kill {
		sig = syscall.SIGKILL
	}
	_ = syscall.Kill(-leader.Pid, sig) // they may have ended just now
}
