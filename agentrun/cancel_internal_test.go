package agentrun

import (
	"context"
	"testing"

	"github.com/stet-dev/stet/blob/memblob"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/kvstream"
)

// The client cancels when an action has been taken and its turn has not begun.
func TestACancelBeforeTheTurn(t *testing.T) {
	ctx := context.Background()
	asked := 0
	opts := ServeOptions{Agent: AgentFunc(func(context.Context, *Turn) (Step, error) {
		asked++
		return Done{}, nil
	})}
	opts.setDefaults()
	s := &session{
		opts: opts, blobs: memblob.New(), request: &agentv1.AgentRunRequest{},
		out:    kvstream.SendFunc[agentv1.AgentServerMessage](func(*agentv1.AgentServerMessage) error { return nil }),
		queued: []*agentv1.ConversationAction{Say("first"), Say("second")},
	}
	d, err := newDraft(ctx, s.blobs, nil)
	if err != nil {
		t.Fatal(err)
	}
	first := s.next()
	if err := s.act(ctx, cancelAction("stop")); err != nil {
		t.Fatal(err)
	}
	if err := s.perform(ctx, d, first); err != nil || asked != 0 {
		t.Errorf("the agent was asked %d times after the cancel, %v", asked, err)
	}
	if s.next() != nil {
		t.Error("an action that waited was not dropped")
	}
	// What comes after the cancel is not cancelled.
	if err := s.act(ctx, Say("third")); err != nil {
		t.Fatal(err)
	}
	if err := s.perform(ctx, d, s.next()); err != nil || asked != 1 || s.turnCancelled() {
		t.Errorf("the agent was asked %d times for what came later, %v", asked, err)
	}
}
