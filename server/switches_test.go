package server_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"connectrpc.com/connect"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/checkpoint"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/gen/stet/v1/stetv1connect"
	"github.com/stet-dev/stet/server"
)

// The switches of checkpoints hold for calls as they do for the command line.
func TestSwitchesHoldInTheServer(t *testing.T) {
	store := t.TempDir()
	open := func(t *testing.T, change func(*checkpoint.Options)) stetv1connect.CheckpointServiceClient {
		db, err := stet.Open(t.Context(), store, &stet.Options{Checkpoints: change})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		http, base := dial(t, serveDB(t, db, &server.Options{Token: token}), token).HTTP()
		return stetv1connect.NewCheckpointServiceClient(http, base)
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"a.txt": "one\n", "large.bin": "0123456789", ".gitignore": "out/\n", "out/x": "x\n"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	files := func(c stetv1connect.CheckpointServiceClient, id string) []string {
		var out []string
		for _, below := range []string{"", "out"} {
			for _, f := range call(t, c.Files, &stetv1.CheckpointFilesRequest{Ref: id, Path: below}).GetFiles() {
				out = append(out, f.GetPath())
			}
		}
		return out
	}
	var first string
	t.Run("capture.max_file and capture.ignore", func(t *testing.T) {
		c := open(t, func(o *checkpoint.Options) { o.Scan.MaxFile, o.Scan.NoIgnore = 8, true })
		made := call(t, c.Create, &stetv1.CreateCheckpointRequest{Workspace: dir})
		first = made.GetCheckpoint().GetId()
		got := files(c, first)
		if slices.Contains(got, "large.bin") || !slices.Contains(got, "out/x") || !slices.Contains(got, "a.txt") {
			t.Errorf("captured %q", got)
		}
	})
	t.Run("rewind.enabled", func(t *testing.T) {
		c := open(t, func(o *checkpoint.Options) { o.DisableRead = true })
		_, err := c.PlanRewind(t.Context(), &stetv1.PlanRewindRequest{Workspace: dir, Ref: first, Files: true})
		if connect.CodeOf(err) != connect.CodeFailedPrecondition {
			t.Errorf("a plan without rewinds: %v", err)
		}
	})
	t.Run("capture.enabled", func(t *testing.T) {
		c := open(t, func(o *checkpoint.Options) { o.DisableWrite = true })
		if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("two\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		made, err := c.Create(t.Context(), &stetv1.CreateCheckpointRequest{Workspace: dir})
		if err == nil && made.GetCheckpoint().GetId() != "" && made.GetCheckpoint().GetId() != first {
			t.Errorf("a checkpoint was made: %v", made)
		}
	})
	t.Run("capture.threshold_ms", func(t *testing.T) {
		c := open(t, func(o *checkpoint.Options) { o.ThresholdMS = 1 << 40 })
		write := func(text string) {
			if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		auto := &stetv1.CreateCheckpointRequest{Workspace: dir, Auto: true}
		write("first\n")
		if made := call(t, c.Create, auto); made.GetCheckpoint() == nil {
			t.Errorf("the first: %v", made)
		}
		write("soon\n")
		if made := call(t, c.Create, auto); made.GetCheckpoint() != nil || made.GetSkipped() != checkpoint.SkippedThrottled {
			t.Errorf("another right after it: %v", made)
		}
		asked := &stetv1.CreateCheckpointRequest{Workspace: dir} // not by a program
		if made := call(t, c.Create, asked); made.GetCheckpoint() == nil || made.GetSkipped() != "" {
			t.Errorf("a checkpoint that was asked for: %v", made)
		}
		write("later\n")
		if made := call(t, open(t, func(*checkpoint.Options) {}).Create, auto); made.GetCheckpoint() == nil {
			t.Errorf("without the setting: %v", made)
		}
	})
	t.Run("force", func(t *testing.T) {
		t.Setenv("HOME", dir)
		home := &stetv1.CreateCheckpointRequest{Workspace: dir, Label: "home"}
		t.Run("off", func(t *testing.T) {
			c := open(t, func(*checkpoint.Options) {})
			if made, err := c.Create(t.Context(), home); err == nil {
				t.Errorf("a checkpoint of the home directory was made: %v", made)
			}
		})
		t.Run("on", func(t *testing.T) {
			call(t, open(t, func(o *checkpoint.Options) { o.Force = true }).Create, home)
		})
	})
	t.Run("rewind.fast_checkpoints", func(t *testing.T) {
		c := open(t, func(o *checkpoint.Options) { o.OneByOne = true })
		ask := &stetv1.PlanRewindRequest{Workspace: dir, Ref: first, Files: true, Exact: true}
		plan := call(t, c.PlanRewind, ask)
		call(t, c.Rewind, &stetv1.RewindRequest{Plan: ask, PlanToken: plan.GetPlanToken()})
		if got, err := os.ReadFile(filepath.Join(dir, "a.txt")); err != nil || string(got) != "one\n" {
			t.Errorf("after a rewind one by one: %q, %v", got, err)
		}
	})
}
