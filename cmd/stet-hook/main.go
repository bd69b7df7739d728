// Command stet-hook is what connected agents run for each event. It promises to cost
// little more than the start of a process: it notes events inside a turn itself, and hands
// every other one to the stet beside it, with the same arguments and the same input.
//
//	stet-hook hook claude-code PreToolUse
//	stet-hook --store /data/stet hook claude-code Stop
//
// Like `stet hook`, it ends with 0, so that the agent goes on whatever happens.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	// It notes the event and ends the process, before main, where that is all there is to do.
	"github.com/stet-dev/stet/internal/cli/shortcut"
)

func main() {
	program, err := beside()
	if err == nil {
		err = handOver(program)
	}
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		os.Exit(exit.ExitCode())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "stet-hook:", err)
	}
}

// beside returns the path of stet in the directory of this program.
func beside() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	name := "stet"
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	path := filepath.Join(filepath.Dir(self), name)
	_, err = os.Stat(path)
	return path, err
}

// handOver lets stet do the work: in the place of this process, or as its child where the
// input was read already.
func handOver(program string) error {
	input := shortcut.Stdin(os.Stdin)
	if input == io.Reader(os.Stdin) {
		if err := replace(program); err == nil || !errors.Is(err, errors.ErrUnsupported) {
			return err
		}
	}
	cmd := exec.Command(program, os.Args[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { // an input that does not end does not keep the agent
		_, _ = io.Copy(pipe, input) // stet may end before it has read everything
		_ = pipe.Close()
	}()
	return cmd.Wait()
}
