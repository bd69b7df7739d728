package server_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"connectrpc.com/connect"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/checkpoint"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/server"
)

// A caller on the server's machine names the process that a turn ends with.
func TestATurnIsHeldByAProcess(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("processes cannot be identified")
	}
	db, err := stet.Open(t.Context(), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	http, base := dial(t, serveDB(t, db, &server.Options{Token: token}), token).HTTP()
	b := newBenchAt(t, http, base)
	create := func(side stetv1.Side, turn, pid uint32) error {
		_, err := b.checkpoints.Create(t.Context(), &stetv1.CreateCheckpointRequest{
			Workspace: b.dir, Conversation: "held", Turn: turn, Side: side, Author: "agent", Pid: pid,
		})
		return err
	}
	if err := create(checkpoint.Before, 1, uint32(os.Getpid())); err != nil {
		t.Fatal(err)
	}
	w, err := db.Checkpoints().Open(t.Context(), b.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	open, err := w.AtWork(t.Context())
	if err != nil || len(open) != 1 || len(open[0].Holder.Processes) != 1 || open[0].Holder.Processes[0].PID != os.Getpid() {
		t.Errorf("at work: %v, %v", open, err)
	}
	for want, err := range map[connect.Code]error{
		connect.CodeInvalidArgument: create(checkpoint.After, 1, uint32(os.Getpid())),
		connect.CodeNotFound:        create(checkpoint.Before, 2, 1<<31-1),
	} {
		if connect.CodeOf(err) != want {
			t.Errorf("got %v, want %v", err, want)
		}
	}
}

// Files are not changed under a process that is at work, unless the caller knows of it.
func TestARewindUnderAProcessIsRefused(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("processes cannot be identified")
	}
	db, err := stet.Open(t.Context(), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	http, base := dial(t, serveDB(t, db, &server.Options{Token: token}), token).HTTP()
	b := newBenchAt(t, http, base)
	name := filepath.Join(b.dir, "held.txt")
	create := func(text string, turn, pid uint32) string {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		res, err := b.checkpoints.Create(t.Context(), &stetv1.CreateCheckpointRequest{
			Workspace: b.dir, Conversation: "held", Turn: turn, Side: checkpoint.Before, Author: "agent", Pid: pid,
		})
		if err != nil {
			t.Fatal(err)
		}
		return res.GetCheckpoint().GetId()
	}
	first := create("one", 1, 0)
	create("two", 2, uint32(os.Getpid()))
	plan := &stetv1.PlanRewindRequest{Ref: first, Workspace: b.dir, Files: true, Exact: true}
	planned, err := b.checkpoints.PlanRewind(t.Context(), plan)
	if err != nil || len(planned.GetAtWork()) == 0 {
		t.Fatalf("planned %v, %v", planned, err)
	}
	rewind := func(even bool) error {
		_, err := b.checkpoints.Rewind(t.Context(), &stetv1.RewindRequest{Plan: plan, PlanToken: planned.GetPlanToken(), EvenIfRunning: even})
		return err
	}
	undo := func(even bool) error {
		_, err := b.checkpoints.Undo(t.Context(), &stetv1.UndoRequest{Workspace: b.dir, EvenIfRunning: even})
		return err
	}
	for _, c := range []struct {
		what string
		err  error
		code connect.Code
	}{
		{"rewind", rewind(false), connect.CodeFailedPrecondition},
		{"rewind all the same", rewind(true), 0},
		{"undo", undo(false), connect.CodeFailedPrecondition},
		{"undo all the same", undo(true), 0},
	} {
		if c.code == 0 && c.err != nil || c.code != 0 && connect.CodeOf(c.err) != c.code {
			t.Errorf("%s: %v, want %v", c.what, c.err, c.code)
		}
	}
	if text, err := os.ReadFile(name); string(text) != "two" {
		t.Errorf("the file is %q, %v", text, err)
	}
}
