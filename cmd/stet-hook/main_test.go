package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/spool"
)

// TestMain lets the test program be stet-hook.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "stet-hook" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// installed returns a directory with stet-hook and a stet that prints how it was called.
func installed(t *testing.T, stet string) (dir string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("stet is a script here")
	}
	dir = t.TempDir()
	test, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// A copy, since the program looks beside what a link names.
	data, err := os.ReadFile(test)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "stet-hook"), data, 0o700)
	}
	if err == nil && stet != "" {
		err = os.WriteFile(filepath.Join(dir, "stet"), []byte("#!/bin/sh\n"+stet), 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func run(t *testing.T, dir, input string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "stet-hook"), args...)
	var out, errOut bytes.Buffer
	cmd.Env = append(os.Environ(), "STET_STORE="+filepath.Join(dir, "store"))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &out, &errOut
	err = cmd.Run()
	return out.String(), errOut.String(), err
}

const printed = `echo "$@"; cat; exit 3`

func TestEventsInsideATurnAreNoted(t *testing.T) {
	dir := installed(t, printed)
	s := spool.Open(filepath.Join(dir, "store.hooks"), "claude-code", "s")
	if err := s.Add("start", foreign.Event{Kind: foreign.TurnStart, Session: "s"}, time.UnixMilli(1)); err != nil {
		t.Fatal(err)
	}
	payload := `{"session_id":"s","cwd":"/w","hook_event_name":"PreToolUse","tool_use_id":"c"}`
	if out, errOut, err := run(t, dir, payload, "hook", "claude-code", "PreToolUse"); err != nil || out+errOut != "" {
		t.Errorf("printed %q, %q, %v", out, errOut, err)
	}
	turn, err := s.Turn(context.Background())
	if err != nil || len(turn.Events) != 2 || turn.Events[1].Name != "PreToolUse" || string(turn.Events[1].Payload) != payload {
		t.Errorf("got %+v, %v", turn, err)
	}
}

// TestOtherEventsAreHandedOver: with their arguments, their input, whether it was read or
// not, and the exit code.
func TestOtherEventsAreHandedOver(t *testing.T) {
	dir := installed(t, printed)
	for _, event := range []string{"Stop", "PreToolUse"} { // without a session, the second one is not noted
		input := `{"session_id":"s","hook_event_name":"` + event + `"}` + strings.Repeat(" ", 1<<20)
		out, _, err := run(t, dir, input, "hook", "claude-code", event)
		if exit := new(exec.ExitError); !errors.As(err, &exit) || exit.ExitCode() != 3 {
			t.Errorf("%s: ended with %v", event, err)
		}
		if want := "hook claude-code " + event + "\n" + input; out != want {
			t.Errorf("%s: stet got %.80q (%d bytes), want %.80q (%d)", event, out, len(out), want, len(want))
		}
	}
}

// TestAnInputThatDoesNotEnd keeps the agent as long as stet itself would.
func TestAnInputThatDoesNotEnd(t *testing.T) {
	dir := installed(t, "echo started")
	in, held, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	defer in.Close()
	cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "stet-hook"), "hook", "claude-code", "PreToolUse")
	cmd.Env, cmd.Stdin = append(os.Environ(), "STET_STORE="+filepath.Join(dir, "store")), in
	if out, err := cmd.Output(); err != nil || string(out) != "started\n" {
		t.Errorf("got %q, %v", out, err)
	}
}

func TestWithoutStetTheAgentGoesOn(t *testing.T) {
	dir := installed(t, "")
	out, errOut, err := run(t, dir, "{}", "hook", "claude-code", "Stop")
	if err != nil || out != "" || !strings.HasPrefix(errOut, "stet-hook: ") {
		t.Errorf("printed %q, %q, ended with %v", out, errOut, err)
	}
}
