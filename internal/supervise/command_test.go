//go:build unix

package supervise

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func shell(t *testing.T, script string) (*Command, *bytes.Buffer) {
	t.Helper()
	path, err := Find("sh", "")
	if err != nil {
		t.Fatal(err)
	}
	out := new(bytes.Buffer)
	dir := t.TempDir()
	return &Command{
		Path: path, Args: []string{"sh", "-c", script}, Dir: dir, In: strings.NewReader("input\n"), Out: out, Err: out,
		Watch: dir, Quiet: time.Millisecond, Beat: time.Hour,
	}, out
}

func TestOutputAndExitCode(t *testing.T) {
	cmd, out := shell(t, "read line; echo got $line; echo to err >&2; exit 7")
	pid := 0
	code, err := cmd.Run(t.Context(), watching{started: func(id int) { pid = id }})
	if err != nil || code != 7 || out.String() != "got input\nto err\n" {
		t.Errorf("code %d, %v, output %q", code, err, out)
	}
	if pid == 0 {
		t.Error("the start was not reported")
	}
}

// A command that ended before Started returned is still a process then, so that nothing
// else has its number.
func TestStartedSeesTheProcess(t *testing.T) {
	cmd, _ := shell(t, "exit 0")
	_, err := cmd.Run(t.Context(), watching{started: func(pid int) {
		if err := syscall.Kill(pid, 0); err != nil {
			t.Errorf("process %d: %v", pid, err)
		}
	}})
	if err != nil {
		t.Error(err)
	}
}

// Signals reach the command whatever the observer is doing.
func TestSignalsAreHandedOn(t *testing.T) {
	signals := make(chan os.Signal, 1)
	cmd := &Command{Signals: signals}
	process := exec.Command("sleep", "1000")
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	defer close(over)
	go cmd.forward(&processes{process.Process}, over)
	signals <- syscall.SIGTERM
	if code, err := exitCode(process, process.Wait()); err != nil || code != 143 {
		t.Errorf("exit code %d, %v; want 143", code, err)
	}
}

// The terminal sends the command its interrupts; a second one would end programs that
// ask before they end.
func TestInterruptsOfATerminal(t *testing.T) {
	signals := make(chan os.Signal) // each is taken before the next is sent
	cmd, _ := shell(t, "trap 'exit 3' INT; trap 'exit 4' TERM; while :; do sleep 0.01; done")
	cmd.Signals, cmd.Terminal = signals, true
	ready := filepath.Join(cmd.Dir, "ready")
	cmd.Args[2] = strings.Replace(cmd.Args[2], "while", ": > "+ready+"; while", 1)
	code, err := cmd.Run(t.Context(), watching{started: func(int) {
		go func() {
			for { // until the traps are set
				if _, err := os.Stat(ready); err == nil {
					break
				}
				time.Sleep(time.Millisecond)
			}
			signals <- syscall.SIGINT
			signals <- syscall.SIGTERM
		}()
	}})
	if err != nil || code != 4 {
		t.Errorf("exit code %d, %v; want 4, that of SIGTERM", code, err)
	}
}

func TestBurstsAreReported(t *testing.T) {
	// The command ends when the burst was reported, so that the test hangs if none is.
	cmd, _ := shell(t, "mkdir d; echo a > d/a; while [ ! -e done ]; do sleep 0.01; done")
	seen := 0
	code, err := cmd.Run(t.Context(), watching{quiet: func([]string) {
		seen++
		if err := os.WriteFile(filepath.Join(cmd.Dir, "done"), nil, 0o644); err != nil {
			t.Error(err)
		}
	}})
	if err != nil || code != 0 || seen == 0 {
		t.Errorf("code %d, %v, %d bursts", code, err, seen)
	}
}

func TestBeats(t *testing.T) {
	cmd, _ := shell(t, "while [ ! -e done ]; do sleep 0.01; done")
	cmd.Beat = time.Millisecond
	_, err := cmd.Run(t.Context(), watching{beat: func() {
		if err := os.WriteFile(filepath.Join(cmd.Dir, "done"), nil, 0o644); err != nil {
			t.Error(err)
		}
	}})
	if err != nil {
		t.Error(err)
	}
}

func TestNotStarted(t *testing.T) {
	cmd, _ := shell(t, "touch proof")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	never := watching{started: func(int) { t.Error("the command was started") }}
	if _, err := cmd.Run(ctx, never); !errors.Is(err, context.Canceled) {
		t.Errorf("run: %v, want cancelled", err)
	}
	if _, err := os.Stat(filepath.Join(cmd.Dir, "proof")); err == nil {
		t.Error("the command ran")
	}
	cmd.Path = filepath.Join(cmd.Dir, "missing")
	var start *StartError
	if _, err := cmd.Run(t.Context(), never); !errors.As(err, &start) || start.Code != ExitNotExecutable {
		t.Errorf("a program that is missing: %v", err)
	}
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"script": 0o755, "text": 0o644} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	if path, err := Find("./script", dir); err != nil || path != "./script" {
		t.Errorf("./script: %q, %v; want the name that it was called by", path, err)
	}
	if path, err := Find("sh", dir); err != nil || !filepath.IsAbs(path) {
		t.Errorf("sh: %q, %v", path, err)
	}
	for name, want := range map[string]int{"./text": ExitNotExecutable, "./missing": ExitNotFound, "no-such-command": ExitNotFound} {
		var start *StartError
		if _, err := Find(name, dir); !errors.As(err, &start) || start.Code != want {
			t.Errorf("%s: %v, want code %d", name, err, want)
		}
	}
}
