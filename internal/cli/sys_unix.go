//go:build unix

package cli

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// freeSpace returns how many bytes the user can still write to the file system of a
// directory.
func freeSpace(dir string) (int64, error) {
	var st unix.Statfs_t
	err := unix.Statfs(dir, &st)
	return int64(st.Bavail) * int64(st.Bsize), err
}

// detach lets a command go on when the terminal is closed. It blocks no unmount.
func detach(cmd *exec.Cmd) {
	cmd.Dir, cmd.SysProcAttr = "/", &syscall.SysProcAttr{Setsid: true}
}

// takeOver runs a program in the place of this process.
func takeOver(path string, args, env []string) error { return syscall.Exec(path, args, env) }

// inputReady waits for input of a terminal.
func inputReady(in *os.File, wait time.Duration) (bool, error) {
	fds := []unix.PollFd{{Fd: int32(in.Fd()), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, int(wait/time.Millisecond))
	if errors.Is(err, unix.EINTR) {
		return false, nil
	}
	return n > 0, err
}
