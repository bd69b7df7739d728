//go:build unix

package supervise

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// gone waits until a process has ended. It is a child of init then, which may take a
// moment to wait for it.
func gone(t *testing.T, pid int) {
	t.Helper()
	for {
		if err := syscall.Kill(pid, 0); errors.Is(err, syscall.ESRCH) {
			return
		}
		if data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat"); err == nil && strings.Contains(string(data), ") Z ") {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func pidIn(t *testing.T, path string) int {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// What a command leaves running ends with it.
func TestGroupEndsWithItsCommand(t *testing.T) {
	cmd, out := shell(t, `sleep 1000 & echo $! > left; echo "$GREETING"; exit 3`)
	cmd.Watch, cmd.Env = "", append(os.Environ(), "GREETING=hello")
	code, err := cmd.RunGroup(t.Context(), 0, nil)
	if err != nil || code != 3 || out.String() != "hello\n" {
		t.Errorf("code %d, %v, output %q", code, err, out)
	}
	gone(t, pidIn(t, filepath.Join(cmd.Dir, "left")))
}

// A command that ignores the request to end is killed, with all that it started.
func TestGroupIsKilled(t *testing.T) {
	defer func(was time.Duration) { grace = was }(grace)
	grace = time.Millisecond
	cmd, _ := shell(t, `trap "" TERM; sleep 1000 & echo $! > pid; mv pid left; while :; do sleep 1; done`)
	left := filepath.Join(cmd.Dir, "left")
	ctx, cancel := context.WithCancel(t.Context())
	code, err := cmd.RunGroup(ctx, 0, watching{quiet: func([]string) {
		if _, err := os.Stat(left); err == nil {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) || code != 128+int(syscall.SIGKILL) {
		t.Errorf("code %d, %v; want a killed command", code, err)
	}
	gone(t, pidIn(t, left))
}

func TestGroupOutOfTime(t *testing.T) {
	cmd, _ := shell(t, "sleep 1000")
	if code, err := cmd.RunGroup(t.Context(), time.Millisecond, nil); !errors.Is(err, ErrTime) || code != 128+int(syscall.SIGTERM) {
		t.Errorf("code %d, %v; want ErrTime", code, err)
	}
}

func TestGroupInterrupted(t *testing.T) {
	cmd, _ := shell(t, `echo x > made; sleep 1000`)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := cmd.RunGroup(ctx, 0, watching{quiet: func([]string) { cancel() }})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("run: %v, want cancelled", err)
	}
	if _, err := cmd.RunGroup(ctx, 0, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled before the start: %v", err)
	}
	cmd.Path = filepath.Join(cmd.Dir, "missing")
	var start *StartError
	if _, err := cmd.RunGroup(t.Context(), 0, nil); !errors.As(err, &start) {
		t.Errorf("a program that is missing: %v", err)
	}
}
