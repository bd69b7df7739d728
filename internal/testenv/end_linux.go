package testenv

import (
	"os/exec"
	"syscall"
)

// EndWithTests sends a process a signal when the tests end, however they end.
func EndWithTests(cmd *exec.Cmd, sig syscall.Signal) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = sig
}
