package realservers

import (
	"os"
	"os/exec"
)

// asServer does nothing: the server runs as any user.
func asServer(*exec.Cmd) {}

func giveToServer(string) error { return nil }

func killProcess(pid int) {
	if p, err := os.FindProcess(pid); err == nil {
		_ = p.Kill() // it may have ended by itself
	}
}
