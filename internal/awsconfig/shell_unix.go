//go:build !windows

package awsconfig

import (
	"context"
	"os/exec"
)

// shell returns a command of the system's shell.
func shell(ctx context.Context, command string) *exec.Cmd {
	return exec.CommandContext(ctx, "sh", "-c", command)
}
