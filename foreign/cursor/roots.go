package cursor

import (
	"context"
	"fmt"

	"github.com/stet-dev/stet/conversation/graph"
)

// walkRoots follows all references from rows.
func (v *verifier) walkRoots(ctx context.Context) error {
	switch v.store.kind {
	case KindEditor:
		return v.walkEditor(ctx)
	default:
		return v.walkAgents(ctx)
	}
}

func (v *verifier) walkEditor(ctx context.Context) error {
	for _, prefix := range []string{HeadPrefix, MessageHeadPrefix} {
		if err := v.walkPointers(ctx, prefix); err != nil {
			return err
		}
	}
	for _, prefix := range []string{ConversationPrefix, MessagePrefix} {
		if err := v.walkDocuments(ctx, prefix); err != nil {
			return err
		}
	}
	return v.walkCloud(ctx)
}

func (v *verifier) walkPointers(ctx context.Context, prefix string) error {
	for row, err := range v.store.Rows(ctx, prefix) {
		if err != nil {
			return err
		}
		id, err := parsePointer(row.Value)
		if err != nil {
			v.corrupt(Finding{Where: row.Key, Err: err})
			continue
		}
		if err := v.walkTo(ctx, row.Key, graph.State, id); err != nil {
			return err
		}
	}
	return nil
}

// walkDocuments follows the states inside conversation and message rows.
func (v *verifier) walkDocuments(ctx context.Context, prefix string) error {
	for row, err := range v.store.Rows(ctx, prefix) {
		if err != nil {
			return err
		}
		doc, err := ParseDocument(row.Value.Data)
		if err != nil {
			v.corrupt(Finding{Where: row.Key, Err: err})
			continue
		}
		state, err := v.store.fieldState(ctx, doc["conversationState"])
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			v.corrupt(Finding{Where: row.Key, Field: "conversationState", Err: err})
			continue
		}
		if state == nil {
			continue
		}
		if state.Source == "pointer" {
			err = v.walkTo(ctx, row.Key, graph.State, state.ID)
		} else {
			err = v.walk(ctx, row.Key, graph.State, state.Data)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (v *verifier) walkCloud(ctx context.Context) error {
	for agent, err := range v.store.CloudAgents(ctx) {
		if err != nil {
			return err
		}
		where := agent.ID + CloudAgentSuffix
		if agent.Problem != nil {
			v.corrupt(Finding{Where: where, Err: agent.Problem})
			continue
		}
		if err := v.walkTo(ctx, where, graph.CloudState, agent.State); err != nil {
			return err
		}
	}
	return nil
}

// walkAgents follows the roots of agents and of their runs.
func (v *verifier) walkAgents(ctx context.Context) error {
	for conv, err := range v.store.All(ctx) {
		if err != nil {
			return err
		}
		where := "agent " + conv.ID
		for _, problem := range append(conv.Problems, conv.StateErr) {
			if problem != nil {
				v.corrupt(Finding{Where: where, Err: problem})
			}
		}
		if conv.State != nil {
			if err := v.walkTo(ctx, where, graph.State, conv.State.ID); err != nil {
				return err
			}
		}
		if err := v.walkRuns(ctx, conv.ID); err != nil {
			return err
		}
	}
	return nil
}

func (v *verifier) walkRuns(ctx context.Context, agent string) error {
	if v.store.kind == KindAgent {
		return nil
	}
	for run, err := range v.store.Runs(ctx, agent) {
		if err != nil {
			return err
		}
		where := fmt.Sprintf("run %s of agent %s", run.ID, agent)
		if !run.Start.IsZero() {
			if err := v.walkTo(ctx, where, graph.State, run.Start); err != nil {
				return err
			}
		}
		if !run.Latest.IsZero() {
			if err := v.walkTo(ctx, where, graph.State, run.Latest); err != nil {
				return err
			}
		}
	}
	return nil
}
