package cli

import (
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/windows"
)

// freeSpace returns how many bytes the user can still write to the volume of a directory.
func freeSpace(dir string) (int64, error) {
	name, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, err
	}
	var free uint64
	err = windows.GetDiskFreeSpaceEx(name, &free, nil, nil)
	return int64(free), err
}

// detach lets a command go on when the console is closed. It holds no directory of the user.
func detach(cmd *exec.Cmd) {
	cmd.Dir = filepath.VolumeName(cmd.Path) + `\`
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.DETACHED_PROCESS | windows.CREATE_NEW_PROCESS_GROUP}
}

// takeOver runs a program and ends this process with its exit code: no program can take the
// place of another here. Interrupts of the console reach both; the program answers them, and
// this process waits for it.
func takeOver(path string, args, env []string) error {
	cmd := exec.Command(path)
	cmd.Args, cmd.Env = args, env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	if err := cmd.Start(); err != nil {
		return err
	}
	_ = cmd.Wait() // the exit code says it
	os.Exit(cmd.ProcessState.ExitCode())
	return nil
}

// inputReady waits for input of a console.
func inputReady(in *os.File, wait time.Duration) (bool, error) {
	event, err := windows.WaitForSingleObject(windows.Handle(in.Fd()), uint32(wait/time.Millisecond))
	return event == windows.WAIT_OBJECT_0, err
}

// standBack gives this process the lowest priority. Errors are harmless.
func standBack() { _ = windows.SetPriorityClass(windows.CurrentProcess(), windows.IDLE_PRIORITY_CLASS) }
