package server_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stet-dev/stet/access"
	"github.com/stet-dev/stet/checkpoint"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/gen/stet/v1/stetv1connect"
	"github.com/stet-dev/stet/server"
)

// Every call that captures or changes files, or tells who wrote them, settles the workspace
// first. What that stores is
// there, also if the call itself only looks.
func TestSettlesBeforeFilesAreUsed(t *testing.T) {
	n, dir := 0, ""
	settle := func(ctx context.Context, w *checkpoint.Workspace) {
		n++
		if w.Path() != dir {
			t.Errorf("settled %s, want %s", w.Path(), dir)
		}
		if _, err := w.Checkpoint(ctx, checkpoint.Request{Label: "settled"}); err != nil {
			t.Error(err)
		}
	}
	http, base := dial(t, start(t, &server.Options{Token: token, Settle: func(ctx context.Context, w *checkpoint.Workspace) {
		if dir != "" {
			settle(ctx, w)
		}
	}}), token).HTTP()
	b := newBenchAt(t, http, base)
	dir = b.dir
	want := func(call string, calls int) {
		t.Helper()
		if n != calls {
			t.Errorf("%s settled %d times, want %d", call, n, calls)
		}
		n = 0
	}
	b.write("notes.txt", "later\n")
	m, plan := b.plan(nil)
	want("PlanRewind", 1)
	call(t, b.checkpoints.Rewind, &stetv1.RewindRequest{Plan: m, PlanToken: plan.GetPlanToken()})
	want("Rewind", 1)
	call(t, b.checkpoints.Undo, &stetv1.UndoRequest{Workspace: b.dir})
	call(t, b.checkpoints.Redo, &stetv1.RedoRequest{Workspace: b.dir})
	want("Undo and Redo", 2)
	call(t, b.checkpoints.Create, &stetv1.CreateCheckpointRequest{Workspace: b.dir})
	want("Create", 1)
	call(t, b.checkpoints.Blame, &stetv1.BlameRequest{Workspace: b.dir, Path: "notes.txt"})
	want("Blame", 1)
	call(t, b.checkpoints.Blame, &stetv1.BlameRequest{Workspace: b.dir, Path: "notes.txt", Ref: "c1"})
	want("Blame of a checkpoint", 0)
	found := false
	for _, one := range call(t, b.checkpoints.List, &stetv1.ListCheckpointsRequest{Workspace: b.dir}).GetCheckpoints() {
		if one.GetLabel() != "settled" {
			continue
		}
		found = true
		file := call(t, b.checkpoints.File, &stetv1.CheckpointFileRequest{Ref: one.GetId(), Path: "notes.txt"})
		if file == nil {
			t.Errorf("the file of %s is gone", one.GetId())
		}
	}
	if !found {
		t.Error("no checkpoint of settling is there")
	}
	want("List and File", 0)
}

// Agents work with the workspaces of an owner, not with those of tenants.
func TestTenantsAreNotSettled(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a"), []byte("a"), 0o600); err != nil {
		t.Fatal(err)
	}
	h := newHouse(t, &server.Options{Workspaces: []string{"a=" + dir}, Settle: func(context.Context, *checkpoint.Workspace) { t.Error("settled") }})
	http, base := h.client("a", access.Admin).HTTP()
	checkpoints := stetv1connect.NewCheckpointServiceClient(http, base)
	if _, err := checkpoints.Create(t.Context(), &stetv1.CreateCheckpointRequest{Workspace: dir}); err != nil {
		t.Fatal(err)
	}
}
