package agentrun_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stet-dev/stet/agentrun"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
)

// The user cancels at any update of a run and sends what is left in the queue
// later. No message is lost or sent twice, no call is executed twice, and none is
// left open.
func TestACancelAtAnyUpdate(t *testing.T) {
	lines := [][]agentrun.Line{everything(), {{Shell: "git push"}, {Say: "Pushed."}}}
	const updates = 45 // of a run that nobody cancels
	for at := 1; at <= updates; at++ {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			s := listen(t, agentrun.ServeOptions{Agent: agentrun.NewScripted(lines...)})
			c := newClient(t, nil)
			q := agentrun.NewQueue()
			for _, id := range []string{"m1", "m2"} {
				_, err := q.Add(message(id, "text of "+id))
				must(t, err)
			}
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			req := c.request(nil)
			req.Queue = q
			seen := 0
			req.OnUpdate = func(*agentv1.InteractionUpdate) {
				if seen++; seen == at {
					cancel()
				}
			}
			_, err := agentrun.Run(ctx, agentrun.Connect(s.client), req)
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			if seen < at {
				t.Fatalf("the run has only %d updates", seen)
			}
			_, err = agentrun.Run(context.Background(), agentrun.Connect(s.client), req)
			must(t, err)
			state := c.state(t)
			if got := messages(state); got != "m1 m2" || len(state.GetPendingToolCalls()) != 0 || len(q.Unprocessed()) != 0 {
				t.Errorf("messages %q, pending %v, waiting %v", got, state.GetPendingToolCalls(), q.Unprocessed())
			}
			for id, n := range c.tools.counts() {
				if n != 1 {
					t.Errorf("%s was executed %d times", id, n)
				}
			}
		})
	}
}
