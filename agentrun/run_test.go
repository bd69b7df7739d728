package agentrun_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stet-dev/stet/agentrun"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
)

// everything is a script with each kind of step.
func everything() []agentrun.Line {
	return []agentrun.Line{
		{Think: "a shop needs a retry"},
		{Say: "I add one."},
		{Todo: []string{"write it", "test it"}},
		{Edit: &agentrun.FileEdit{Path: "retry.go", Content: "package retry\n"}},
		{Shell: "go test"},
		{Subagent: &agentrun.SubScript{Prompt: "look at the logs", Lines: []agentrun.Line{{Shell: "tail log"}, {Say: "they are fine"}}}},
		{Say: "Done."},
	}
}

func TestAFullTurn(t *testing.T) {
	s := listen(t, agentrun.ServeOptions{Agent: agentrun.NewScripted(everything())})
	var saved []agentrun.Checkpoint
	c := newClient(t, &agentrun.HandlerOptions{OnCheckpoint: func(_ context.Context, cp agentrun.Checkpoint) error {
		saved = append(saved, cp)
		return nil
	}})
	must(t, os.WriteFile(filepath.Join(c.tools.dir, "retry.go"), []byte("old\n"), 0o600))
	req := c.request(say("m1", "add a retry"))
	var kinds []string
	req.OnUpdate = func(u *agentv1.InteractionUpdate) {
		switch {
		case u.GetTextDelta() != nil:
			kinds = append(kinds, "text")
		case u.GetThinkingDelta() != nil:
			kinds = append(kinds, "thinking")
		case u.GetToolCallCompleted() != nil:
			kinds = append(kinds, "call")
		case u.GetTurnEnded() != nil:
			kinds = append(kinds, "ended")
		}
	}
	result, err := agentrun.Run(context.Background(), agentrun.Connect(s.client), req)
	must(t, err)
	if result.Turns != 1 || result.Streams != 1 || result.Resumed != 0 || result.Checkpoints != len(saved) {
		t.Errorf("result is %+v with %d checkpoints saved", result, len(saved))
	}
	if got, want := strings.Join(kinds, " "), "thinking text call call call call text ended"; got != want {
		t.Errorf("updates were %s, want %s", got, want)
	}
	state := c.state(t)
	if got := messages(state); got != "m1" {
		t.Errorf("messages are %q", got)
	}
	steps := state.GetTurns()[0].GetAgentConversationTurn().GetSteps()
	if len(steps) != 7 {
		t.Fatalf("the turn has %d steps, want 7: %v", len(steps), steps)
	}
	edit := steps[3].GetToolCall().GetEditToolCall().GetResult().GetSuccess()
	if edit.GetBeforeFullFileContent() != "old\n" || edit.GetAfterFullFileContent() != "package retry\n" {
		t.Errorf("the edit's result is %v", edit)
	}
	if out := steps[4].GetToolCall().GetShellToolCall().GetResult().GetSuccess().GetStdout(); out != "ran go test" {
		t.Errorf("the command's output is %q", out)
	}
	if task := steps[5].GetToolCall().GetTaskToolCall().GetResult().GetSuccess(); len(task.GetConversationSteps()) != 2 {
		t.Errorf("the subagent's result is %v", task)
	}
	if len(state.GetTodos()) != 2 || state.GetTodos()[0].GetContent() != "write it" {
		t.Errorf("to-dos are %v", state.GetTodos())
	}
	if len(state.GetPendingToolCalls()) != 0 {
		t.Errorf("calls are left open: %v", state.GetPendingToolCalls())
	}
	data, err := os.ReadFile(filepath.Join(c.tools.dir, "retry.go"))
	must(t, err)
	if string(data) != "package retry\n" {
		t.Errorf("the file holds %q", data)
	}
	if len(c.h.Latest().GetTurns()) != 1 {
		t.Errorf("the latest state has %d turns", len(c.h.Latest().GetTurns()))
	}
	if last := saved[len(saved)-1]; last.Save.Root != c.root(t) || last.Save.MessageID != "m1" {
		t.Errorf("the last save is %+v", last.Save)
	}
}

func TestNoCheckpointGivesAClearError(t *testing.T) {
	s := listen(t, agentrun.ServeOptions{Agent: agentrun.NewScripted(everything())})
	c := newClient(t, nil)
	_, err := agentrun.Run(context.Background(), agentrun.Connect(s.client), c.request(agentrun.Resume()))
	if !errors.Is(err, agentrun.ErrNoCheckpoint) {
		t.Errorf("resuming nothing: %v", err)
	}
	s.cuts = []int{1, 2, 1}
	req := c.request(say("m1", "hello"))
	req.Attempts = 2
	result, err := agentrun.Run(context.Background(), agentrun.Connect(s.client), req)
	if !errors.Is(err, agentrun.ErrNoCheckpoint) || !errors.Is(err, agentrun.ErrConnectionLost) {
		t.Errorf("three cuts before any checkpoint: %v", err)
	}
	if result.Streams != 3 {
		t.Errorf("%d streams were opened, want 3", result.Streams)
	}
}

func TestTheServersRefusalIsNotRetried(t *testing.T) {
	s := listen(t, agentrun.ServeOptions{Agent: agentrun.NewScripted([]agentrun.Line{{Say: "hm"}, {Fail: "I cannot do that"}})})
	c := newClient(t, nil)
	result, err := agentrun.Run(context.Background(), agentrun.Connect(s.client), c.request(say("m1", "hello")))
	if err == nil || !strings.Contains(err.Error(), "I cannot do that") || errors.Is(err, agentrun.ErrConnectionLost) {
		t.Errorf("the run ended with %v", err)
	}
	if result.Streams != 1 || len(c.state(t).GetTurns()[0].GetAgentConversationTurn().GetSteps()) != 1 {
		t.Errorf("result %+v, state %v", result, c.state(t))
	}
}

func TestDisconnectIsResumed(t *testing.T) {
	lines := []agentrun.Line{{Say: "one"}, {Disconnect: true}, {Shell: "make"}, {Disconnect: true}, {Say: "two"}}
	s := listen(t, agentrun.ServeOptions{Agent: agentrun.NewScripted(lines)})
	c := newClient(t, nil)
	resumed := 0
	req := c.request(say("m1", "hello"))
	req.OnResume = func(int, error) { resumed++ }
	result, err := agentrun.Run(context.Background(), agentrun.Connect(s.client), req)
	must(t, err)
	if result.Resumed != 2 || resumed != 2 || len(c.state(t).GetTurns()[0].GetAgentConversationTurn().GetSteps()) != 3 {
		t.Errorf("result %+v, state %v", result, c.state(t))
	}
}

func TestQueuedMessagesAreSentInOrder(t *testing.T) {
	s := listen(t, agentrun.ServeOptions{Agent: agentrun.NewScripted(
		[]agentrun.Line{{Say: "1"}}, []agentrun.Line{{Say: "2"}, {Disconnect: true}}, []agentrun.Line{{Say: "3"}}, []agentrun.Line{{Say: "4"}},
	)})
	c := newClient(t, nil)
	q := agentrun.NewQueue()
	for _, id := range []string{"m1", "m2", "m3", "m2"} {
		_, err := q.Add(message(id, "text of "+id))
		must(t, err)
	}
	req := c.request(nil)
	req.Queue = q
	added := false
	req.OnUpdate = func(u *agentv1.InteractionUpdate) {
		if u.GetTurnEnded() != nil && !added {
			added = true
			_, err := q.Add(message("m4", "one more"))
			must(t, err)
		}
	}
	result, err := agentrun.Run(context.Background(), agentrun.Connect(s.client), req)
	must(t, err)
	if got := messages(c.state(t)); got != "m1 m2 m3 m4" || result.Turns != 4 {
		t.Errorf("messages are %q after %d turns", got, result.Turns)
	}
	if left := q.Unprocessed(); len(left) != 0 {
		t.Errorf("%v are left", left)
	}
	// A queue that is filled again after a crash sends only what is new.
	again := agentrun.NewQueue()
	for _, id := range []string{"m1", "m5", "m3"} {
		_, err := again.Add(message(id, "text of "+id))
		must(t, err)
	}
	req.Queue = again
	_, err = agentrun.Run(context.Background(), agentrun.Connect(s.client), req)
	must(t, err)
	if got := messages(c.state(t)); got != "m1 m2 m3 m4 m5" {
		t.Errorf("messages are %q", got)
	}
}
