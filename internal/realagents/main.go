package realagents

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stet-dev/stet/internal/testenv"
)

// Variables of the process that runs the tests.
const (
	asked    = "STET_AGENTS"
	isolated = "STET_AGENTS_ISOLATED"
	program  = "STET_AGENTS_PROGRAM"
)

// Wanted reports whether the tests of real agents were asked for.
func Wanted() bool { return os.Getenv(asked) == "1" }

// Isolated reports whether the network of this process ends at this computer.
func Isolated() bool { return os.Getenv(isolated) == "1" }

// Need skips a test of real agents that was not asked for.
func Need(tb testing.TB) {
	tb.Helper()
	if !Wanted() {
		tb.Skip("make test-agents runs this")
	}
}

// Main runs the tests of a binary, in a network of their own where that is possible.
func Main(m *testing.M) int {
	if !Wanted() {
		return m.Run()
	}
	if Isolated() {
		if err := loopback(); err != nil {
			fmt.Fprintln(os.Stderr, "realagents: no loopback:", err)
			return 1
		}
		return m.Run()
	}
	remove, err := build()
	if err != nil {
		fmt.Fprintln(os.Stderr, "realagents:", err)
		return 1
	}
	defer remove()
	cmd := exec.Command(os.Args[0], os.Args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), isolated+"=1")
	if !alone(cmd) || cmd.Start() != nil {
		fmt.Fprintln(os.Stderr, "realagents: this system gives no network of our own; the agents get a proxy that is not there")
		return m.Run()
	}
	err = cmd.Wait()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return max(1, exit.ExitCode())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "realagents:", err)
		return 1
	}
	return 0
}

// build builds stet, unless a program is named already.
func build() (remove func(), err error) {
	if os.Getenv(program) != "" {
		return func() {}, nil
	}
	dir, err := os.MkdirTemp("", "stet-agents-")
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "stet")
	cmd := exec.Command("go", "build", "-o", path, "./cmd/stet")
	cmd.Dir = testenv.Root()
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, errors.Join(fmt.Errorf("go build: %w\n%s", err, out), os.RemoveAll(dir))
	}
	return func() { os.RemoveAll(dir) }, os.Setenv(program, path)
}

// stetProgram returns the program that Main built.
func stetProgram(tb testing.TB) string {
	tb.Helper()
	path := os.Getenv(program)
	if path == "" {
		tb.Fatal("TestMain has to call realagents.Main")
	}
	return path
}
