package server_test

import (
	"testing"

	"connectrpc.com/connect"

	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
)

// A rewind says what it left different and why, one that is exact leaves nothing, and
// names that are not text stay apart.
func TestExactAndPartialOverTheWire(t *testing.T) {
	b := newBench(t)
	b.write("notes.txt", "by hand\n")
	b.write("caf\xe9", "1\n")
	b.write("caf\xe8", "2\n")
	req, plan := b.plan(nil)
	if !plan.GetPartial() {
		t.Errorf("the plan is not partial: %v", plan)
	}
	done := call(t, b.checkpoints.Rewind, &stetv1.RewindRequest{Plan: req, PlanToken: plan.GetPlanToken()})
	left := map[string]string{}
	for _, f := range done.GetLeft() {
		name := f.GetPath()
		if f.GetPathBytes() != nil {
			name = string(f.GetPathBytes())
		}
		left[name] = f.GetWhy() + ": " + f.GetReason()
	}
	if !done.GetPartial() || len(left) != 3 || left["notes.txt"] != "yours: yours, changed since" || left["caf\xe9"] != "yours: yours, created since" || left["caf\xe8"] == "" {
		t.Errorf("partial %v, left %q", done.GetPartial(), left)
	}
	req, plan = b.plan(func(m *stetv1.PlanRewindRequest) { m.Exact = true })
	if plan.GetPartial() || plan.GetNeedsChoice() {
		t.Errorf("the exact plan: %v", plan)
	}
	done = call(t, b.checkpoints.Rewind, &stetv1.RewindRequest{Plan: req, PlanToken: plan.GetPlanToken()})
	if done.GetPartial() || len(done.GetLeft()) > 0 {
		t.Errorf("left %v", done.GetLeft())
	}
	b.has("notes.txt", "mine\n")
	b.has("caf\xe9", "")
	b.has("caf\xe8", "")
	refuse(t, b.checkpoints.PlanRewind, &stetv1.PlanRewindRequest{Ref: "c1", Workspace: b.dir, Exact: true, Conflicts: "keep-mine"}, connect.CodeInvalidArgument)
	for _, files := range []bool{false, true} { // a single turn is taken out of the files only
		req := &stetv1.PlanRewindRequest{OnlyTurn: 1, Workspace: b.dir, Conversation: b.conv, Files: files, WithConversation: true}
		refuse(t, b.checkpoints.PlanRewind, req, connect.CodeInvalidArgument)
	}
}
