//go:build unix

package realservers

import (
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// postgresUser is the user of the server, which refuses to run as root.
func postgresUser() *syscall.Credential {
	if os.Getuid() != 0 {
		return nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, _ := strconv.ParseUint(u.Uid, 10, 32) // decimal on every Unix
		gid, _ := strconv.ParseUint(u.Gid, 10, 32)
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
	return nil
}

// asServer runs a command as the user of the server.
func asServer(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Credential: postgresUser()} }

// giveToServer gives a path to the user of the server.
func giveToServer(path string) error {
	if c := postgresUser(); c != nil {
		return os.Chown(path, int(c.Uid), int(c.Gid))
	}
	return nil
}

func killProcess(pid int) { _ = syscall.Kill(pid, syscall.SIGKILL) }
