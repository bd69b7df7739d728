package awsconfig

import (
	"context"
	"os/exec"
	"syscall"
)

// shell returns a command of the system's shell, which has rules of its own for quotes.
func shell(ctx context.Context, command string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "cmd.exe")
	cmd.SysProcAttr = &syscall.SysProcAttr{CmdLine: `cmd.exe /D /S /C "` + command + `"`}
	return cmd
}
