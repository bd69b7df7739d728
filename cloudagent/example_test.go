package cloudagent_test

import (
	"context"
	"fmt"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/cloudagent"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/kv/memkv"
)

// An agent writes; a reader that has seen the first update gets the others.
func Example() {
	ctx := context.Background()
	mem := memblob.New()
	store := cloudagent.New(blob.Checked(mem), memkv.New(mem), nil)

	agent, err := store.Create(ctx, cloudagent.Spec{Name: "fix the tests"})
	if err != nil {
		panic(err)
	}
	var seen cloudagent.Offset
	for i, word := range []string{"Looking", "Fixing", "Done"} {
		update := &agentv1.InteractionUpdate{Message: &agentv1.InteractionUpdate_TextDelta{TextDelta: &agentv1.TextDeltaUpdate{Text: word}}}
		at, err := store.AppendUpdate(ctx, agent.ID, nil, update)
		if err != nil {
			panic(err)
		}
		if i == 0 {
			seen = at
		}
	}
	if err := store.Archive(ctx, agent.ID); err != nil {
		panic(err)
	}

	for response, err := range store.Stream(ctx, agent.ID, &cloudagent.StreamOptions{After: seen.String()}) {
		if err != nil {
			panic(err)
		}
		if update := response.GetInteractionUpdateWithOffset(); update != nil {
			fmt.Println(update.InteractionUpdate.GetTextDelta().GetText())
		} else {
			fmt.Println(response.GetWorkflowStatusWithOffset().GetWorkflowStatus())
		}
	}
	// Output:
	// Fixing
	// Done
	// CLOUD_AGENT_WORKFLOW_STATUS_ARCHIVED
}
