package server_test

import (
	"testing"

	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
)

// A conflict says whether it merges, and a plan with a merge has the result.
func TestPlansShowMerges(t *testing.T) {
	b := newBench(t)
	b.write("cart.go", "one\nmine\nthree\n")
	b.write("lib/price.go", "package lib\n// mine\n")
	of := func(plan *stetv1.PlanRewindResponse) map[string]*stetv1.PlannedFile {
		out := make(map[string]*stetv1.PlannedFile)
		for _, f := range plan.GetFiles() {
			out[f.GetPath()] = f
		}
		return out
	}
	_, plan := b.plan(nil)
	got := of(plan)
	if f := got["cart.go"]; f.GetAction() != "conflict" || f.GetNoMerge() == "" {
		t.Errorf("cart.go, changed in the same place: %v", f)
	}
	if f := got["lib/price.go"]; f.GetAction() != "conflict" || f.GetNoMerge() == "" {
		t.Errorf("lib/price.go, which the agent created: %v", f)
	}
	b.write("cart.go", "zero\none\n2 < 3\nthree\n")
	_, plan = b.plan(nil)
	if f := of(plan)["cart.go"]; f.GetAction() != "conflict" || f.GetNoMerge() != "" || f.GetMerge() != nil {
		t.Errorf("cart.go, changed elsewhere: %v", f)
	}
	_, plan = b.plan(func(m *stetv1.PlanRewindRequest) { m.Choices = map[string]string{"cart.go": "merge"} })
	f := of(plan)["cart.go"]
	if f.GetAction() != "restore" || !f.GetMerged() || len(f.GetMerge()) != 1 {
		t.Fatalf("merged: %v", f)
	}
	var text string
	for _, l := range f.GetMerge()[0].GetLines() {
		text += l.GetOp() + l.GetText() + "\n"
	}
	if want := " zero\n one\n-2 < 3\n+two\n three\n"; text != want {
		t.Errorf("the merge shows %q, want %q", text, want)
	}
}

// One hunk of a diff is restored, and the rest of the file stays.
func TestLinesAreRestoredOverTheWire(t *testing.T) {
	b := newBench(t)
	b.write("cart.go", "zero\none\n2 < 3\nthree\n")
	m, plan := b.plan(func(m *stetv1.PlanRewindRequest) {
		m.Files = true
		m.Lines = &stetv1.RestoreLines{Path: "cart.go", From: b.after.GetId(), Ranges: []*stetv1.LineRange{{Line: 1, Lines: 3, FromLine: 1, FromLines: 3}}}
	})
	call(t, b.checkpoints.Rewind, &stetv1.RewindRequest{Plan: m, PlanToken: plan.GetPlanToken()})
	b.has("cart.go", "zero\none\ntwo\nthree\n")
	b.has("lib/price.go", "package lib\n")
	call(t, b.checkpoints.Undo, &stetv1.UndoRequest{Workspace: b.dir})
	b.has("cart.go", "zero\none\n2 < 3\nthree\n")
}
