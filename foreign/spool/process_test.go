package spool_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/spool"
)

func process(t *testing.T, pid int) checkpoint.Process {
	t.Helper()
	p, ok := checkpoint.ProcessOf(pid, "agent")
	if !ok {
		t.Skip("processes cannot be identified here")
	}
	return p
}

// child returns a process that runs until the returned function is called.
func child(t *testing.T) (checkpoint.Process, func()) {
	t.Helper()
	cmd := exec.Command("cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	end := sync.OnceFunc(func() {
		in.Close()
		_ = cmd.Wait()
	})
	t.Cleanup(end)
	return process(t, cmd.Process.Pid), end
}

func opened(t *testing.T, dir string) (out []checkpoint.Process) {
	t.Helper()
	all, err := spool.Opened(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range all {
		if o.Agent != "agent" || o.Session != "s" || o.Workspace != "/w" || o.Last.IsZero() {
			t.Errorf("got %+v", o)
		}
		out = append(out, o.Process)
	}
	return out
}

// A session is open as long as the process that opened it last runs and has not closed it.
func TestOpenSessions(t *testing.T) {
	dir := t.TempDir()
	if got := opened(t, dir); len(got) != 0 {
		t.Errorf("an empty spool has %v", got)
	}
	s := spool.Open(dir, "agent", "s")
	add(t, s, foreign.SessionStart, "a")
	me := process(t, os.Getpid())
	other, end := child(t)
	set := func(p checkpoint.Process) {
		t.Helper()
		if err := s.SetOpen(spool.OpenSession{Agent: "agent", Session: "s", Workspace: "/w", Process: p}); err != nil {
			t.Fatal(err)
		}
	}
	want := func(ps ...checkpoint.Process) {
		t.Helper()
		got := opened(t, dir)
		if len(got) != len(ps) || len(ps) == 1 && got[0] != ps[0] {
			t.Errorf("got %v, want %v", got, ps)
		}
	}
	set(other)
	want(other)
	set(me) // the session is resumed
	want(me)
	if err := s.SetClosed(other); err != nil { // the first one ends late
		t.Error(err)
	}
	want(me)
	for range 2 {
		if err := s.SetClosed(me); err != nil {
			t.Error(err)
		}
		want()
	}
	set(other)
	end()
	want()
	if err := os.WriteFile(filepath.Join(dir, "agent", "s", "process.json"), []byte(`{"Agent":"agent","Pro`), 0o600); err != nil {
		t.Fatal(err)
	}
	want()
	if err := s.SetClosed(me); err != nil {
		t.Error(err)
	}
	set(me)
	want(me)
}

// Readers find one of the processes that writers name at once, and nothing is left behind.
func TestOpenedAtOnce(t *testing.T) {
	dir := t.TempDir()
	s := spool.Open(dir, "agent", "s")
	add(t, s, foreign.SessionStart, "a")
	me := process(t, os.Getpid())
	other, _ := child(t)
	if err := s.SetOpen(spool.OpenSession{Agent: "agent", Session: "s", Workspace: "/w", Process: me}); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for _, p := range []checkpoint.Process{me, other, me, other} {
		wg.Go(func() {
			for range 50 {
				if err := s.SetOpen(spool.OpenSession{Agent: "agent", Session: "s", Workspace: "/w", Process: p}); err != nil {
					t.Error(err)
				}
				if got, err := spool.Opened(dir); err != nil || len(got) != 1 || got[0].Process != me && got[0].Process != other {
					t.Errorf("got %+v, %v", got, err)
				}
			}
		})
	}
	wg.Wait()
	if left, _ := filepath.Glob(filepath.Join(dir, "agent", "s", "process.json-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
