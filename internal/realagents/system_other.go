//go:build !linux

package realagents

import (
	"errors"
	"os/exec"
)

func alone(*exec.Cmd) bool { return false }

func loopback() error { return errors.ErrUnsupported }
