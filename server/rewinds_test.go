package server_test

import (
	"testing"

	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
)

// A conflict in a file whose name is not text can be resolved by the name as it is
// shown.
func TestChoicesForPathsThatAreNoText(t *testing.T) {
	b := newBench(t)
	const name, shown = "caf\xe9.txt", "caf\uFFFD.txt"
	b.write(name, "one\n")
	before := b.take(&stetv1.CreateCheckpointRequest{Side: stetv1.Side_SIDE_BEFORE, Turn: 2})
	b.write(name, "the agent's\n")
	b.take(&stetv1.CreateCheckpointRequest{Side: stetv1.Side_SIDE_AFTER, Turn: 2, Author: "agent"})
	b.write(name, "mine\n")
	m := &stetv1.PlanRewindRequest{Workspace: b.dir, Conversation: b.conv, Ref: before.GetId(), Files: true}
	if !call(t, b.checkpoints.PlanRewind, m).GetNeedsChoice() {
		t.Fatal("there is no conflict")
	}
	for _, test := range []struct{ choice, want string }{{"keep-mine", "mine\n"}, {"theirs", "one\n"}} {
		m.Choices = map[string]string{shown: test.choice}
		plan := call(t, b.checkpoints.PlanRewind, m)
		if plan.GetNeedsChoice() {
			t.Fatalf("%s is no choice", test.choice)
		}
		call(t, b.checkpoints.Rewind, &stetv1.RewindRequest{Plan: m, PlanToken: plan.GetPlanToken()})
		b.has(name, test.want)
	}
}
