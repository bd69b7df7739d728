//go:build unix

package realagents_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stet-dev/stet/internal/realagents"
)

// goesOn runs a turn that must not notice that stet is broken.
func goesOn(t *testing.T, b *realagents.Box) {
	t.Helper()
	out := b.Prompt(nil, one)
	want(t, "files", b.Tree(), afterOne)
	requests := b.Model.Requests()
	if len(requests) == 0 {
		t.Fatalf("the model was not asked:\n%s", out)
	}
	if last := requests[len(requests)-1]; !strings.Contains(out, "first done") && last.Reply != "first done" {
		t.Errorf("the agent ended with %q:\n%s", last.Reply, out)
	}
	for _, r := range requests {
		for _, word := range []string{"denied", "Denied", "hook error"} {
			if strings.Contains(string(r.Body), `"`+word) {
				t.Errorf("the model was shown %q: %.2000s", word, r.Body)
			}
		}
	}
}

func TestTheAgentGoesOnWithoutTheProgram(t *testing.T) {
	each(t, func(t *testing.T, a realagents.Agent) {
		b := realagents.NewBox(t, a)
		b.Stet("connect", a.Name, "-y")
		if err := os.Remove(b.StetPath); err != nil {
			t.Fatal(err)
		}
		step(t, a.Name, "no program", func(t *testing.T) { goesOn(t, b.In(t)) })
	})
}

// TestTheAgentGoesOnWithoutAStore names a store that cannot be made: there is a file in
// the way.
func TestTheAgentGoesOnWithoutAStore(t *testing.T) {
	each(t, func(t *testing.T, a realagents.Agent) {
		b := realagents.NewBox(t, a)
		b.Store = filepath.Join(b.Home, "file", "store")
		b.Write(filepath.Dir(b.Store), "in the way")
		b.Stet("connect", a.Name, "-y")
		step(t, a.Name, "no store", func(t *testing.T) { goesOn(t, b.In(t)) })
	})
}

// TestAnInterruptedTurn ends an agent while its shell tool runs. What its edit tool wrote
// is the turn's work; the next prompt begins a turn of its own.
func TestAnInterruptedTurn(t *testing.T) {
	for name, signal := range map[string]syscall.Signal{"INT": syscall.SIGINT, "KILL": syscall.SIGKILL} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, a realagents.Agent) {
				b := realagents.NewBox(t, a)
				b.Stet("connect", a.Name, "-y")
				step(t, a.Name, "signal "+name, func(t *testing.T) { interrupt(t, b.In(t), a, signal) })
			}, "claude-code", "codex")
		})
	}
}

func interrupt(t *testing.T, b *realagents.Box, a realagents.Agent, signal syscall.Signal) {
	gate := filepath.Join(b.Home, "gate") // the command waits until it is opened
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	run := b.Start(nil, "turn one: is interrupted\n::write a.txt one\n::bash echo half > half.txt; cat "+gate+"\n::say never said")
	run.Until(t, "the command has begun", func() bool {
		_, err := os.Stat(filepath.Join(b.Workspace, "half.txt"))
		return err == nil
	})
	if err := run.Signal(signal); err != nil {
		t.Fatal(err)
	}
	if _, err := run.Wait(); errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	if f, err := os.OpenFile(gate, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
		f.Close() // a command that is left ends
	}
	b.Prompt(a.Again, "turn two: goes on\n::write b.txt two\n::say second done")
	log := b.Stet("log")
	for _, word := range []string{"turn one: is interrupted", "turn two: goes on"} {
		if !strings.Contains(log, word) {
			t.Errorf("the log lacks %q:\n%s", word, log)
		}
	}
	b.Stet("rewind", "before:turn:1", "-y")
	tree := strings.Join(b.Tree(), "\n")
	if strings.Contains(tree, "a.txt") || strings.Contains(tree, "b.txt") || !strings.Contains(tree, "README.md: sample") {
		t.Errorf("before turn 1 there are\n%s\n%s", tree, log)
	}
	b.Stet("undo")
	if tree := strings.Join(b.Tree(), "\n"); !strings.Contains(tree, "a.txt: one") || !strings.Contains(tree, "half.txt: half") || !strings.Contains(tree, "b.txt: two") {
		t.Errorf("undo leaves\n%s", tree)
	}
}
