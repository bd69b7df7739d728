package agentrun_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/agentrun"
	"github.com/stet-dev/stet/blob"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
)

// steps is an agent that takes one step after the other in each turn.
func steps(turns ...[]agentrun.Step) agentrun.Agent {
	return agentrun.AgentFunc(func(_ context.Context, t *agentrun.Turn) (agentrun.Step, error) {
		if t.Depth > 0 {
			if len(t.Steps) > 0 {
				return agentrun.Done{}, nil
			}
			return agentrun.SayStep{Text: "done below"}, nil
		}
		script := turns[t.Number-1]
		if len(t.Steps) >= len(script) {
			return agentrun.Done{}, nil
		}
		return script[len(t.Steps)], nil
	})
}

func read(path string) *agentv1.ToolCall {
	return &agentv1.ToolCall{Tool: &agentv1.ToolCall_ReadToolCall{ReadToolCall: &agentv1.ReadToolCall{Args: &agentv1.ReadToolArgs{Path: path}}}}
}

func todo(id, content string, status agentv1.TodoStatus) *agentv1.TodoItem {
	return &agentv1.TodoItem{Id: id, Content: content, Status: status}
}

// runAll runs actions one after another and returns the last state.
func runAll(t *testing.T, c *client, opts agentrun.ServeOptions, actions ...*agentv1.ConversationAction) *agentv1.ConversationStateStructure {
	t.Helper()
	s := listen(t, opts)
	for _, a := range actions {
		_, err := agentrun.Run(context.Background(), agentrun.Connect(s.client), c.request(a))
		must(t, err)
	}
	return c.h.Latest()
}

func TestRunsWriteTimingsPathsTokensAndMode(t *testing.T) {
	c := newClient(t, nil)
	must(t, os.WriteFile(filepath.Join(c.tools.dir, "a.go"), []byte("package a"), 0o600))
	now := int64(5000)
	agent := steps(
		[]agentrun.Step{agentrun.Call(read("a.go")), agentrun.Call(read("a.go")), agentrun.Call(read("none.go"))},
		[]agentrun.Step{agentrun.CountedStep{Step: agentrun.SayStep{Text: "hi"}, Tokens: &agentv1.ConversationTokenDetails{UsedTokens: 7, MaxTokens: 100}}},
	)
	first := say("m1", "read")
	first.GetUserMessageAction().GetUserMessage().Mode = agentv1.AgentMode_AGENT_MODE_ASK
	state := runAll(t, c, agentrun.ServeOptions{Agent: agent, Now: func() time.Time { now += 10; return time.UnixMilli(now) }}, first, say("m2", "answer"))
	if got := state.GetReadPaths(); len(got) != 1 || got[0] != "a.go" {
		t.Errorf("read paths %q, want a.go once", got)
	}
	if got := state.GetTokenDetails(); got.GetUsedTokens() != 7 || got.GetMaxTokens() != 100 {
		t.Errorf("token details %v", got)
	}
	if state.GetMode() != agentv1.AgentMode_AGENT_MODE_ASK {
		t.Errorf("mode %v, want that of the message", state.GetMode())
	}
	timings := state.GetTurnTimings()
	if len(timings) != 2 || timings[0].GetTimestampMs() != 5010 || timings[0].GetDurationMs() == 0 || timings[1].GetTimestampMs() <= timings[0].GetTimestampMs() {
		t.Errorf("timings %v", timings)
	}
}

func TestTodosAreMergedByID(t *testing.T) {
	const pending, completed = agentv1.TodoStatus_TODO_STATUS_PENDING, agentv1.TodoStatus_TODO_STATUS_COMPLETED
	merge := agentrun.Todos(todo("b", "second", completed), todo("c", "third", pending))
	merge.GetUpdateTodosToolCall().Args.Merge = true
	c := newClient(t, nil)
	runAll(t, c, agentrun.ServeOptions{Agent: steps([]agentrun.Step{
		agentrun.Call(agentrun.Todos(todo("a", "first", pending), todo("b", "second", pending))), agentrun.Call(merge),
	})}, say("m1", "plan"))
	state := c.state(t)
	var got []string
	for _, item := range state.GetTodos() {
		got = append(got, item.GetId()+" "+item.GetStatus().String())
	}
	if want := "a TODO_STATUS_PENDING, b TODO_STATUS_COMPLETED, c TODO_STATUS_PENDING"; strings.Join(got, ", ") != want {
		t.Errorf("to-do list %q, want %q", got, want)
	}
	result := state.GetTurns()[0].GetAgentConversationTurn().GetSteps()[1].GetToolCall().GetUpdateTodosToolCall().GetResult().GetSuccess()
	if result.GetTotalCount() != 3 || len(result.GetTodos()) != 3 || !result.GetWasMerge() {
		t.Errorf("the result is %v, want the whole list", result)
	}
}

// A subagent whose state lies inside that of its parent, as other programs keep it, goes
// on from there, and its entry says when it was used.
func TestASubagentKeptByValueGoesOn(t *testing.T) {
	ctx := context.Background()
	c := newClient(t, nil)
	user, err := proto.Marshal(message("s1", "earlier"))
	must(t, err)
	said := blob.New(user)
	turn, err := proto.Marshal(&agentv1.ConversationTurnStructure{Turn: &agentv1.ConversationTurnStructure_AgentConversationTurn{
		AgentConversationTurn: &agentv1.AgentConversationTurnStructure{UserMessage: said.ID.Bytes()},
	}})
	must(t, err)
	turned := blob.New(turn)
	must(t, c.blobs.Put(ctx, said, turned))
	raw, err := proto.Marshal(&agentv1.ConversationStateStructure{SubagentStates: map[string]*agentv1.SubagentPersistedState{"helper": {
		ConversationState: &agentv1.ConversationStateStructure{Turns: [][]byte{turned.ID.Bytes()}}, CreatedTimestampMs: 77,
	}}})
	must(t, err)
	must(t, c.conv.SetStructure(ctx, raw))
	_, err = c.conv.Save(ctx, nil)
	must(t, err)
	c.h, err = agentrun.NewHandler(ctx, c.blobs, c.conv, nil)
	must(t, err)

	task := agentrun.Task("more", "go on")
	task.GetTaskToolCall().Args.AgentId = proto.String("helper")
	task.GetTaskToolCall().Args.SubagentType = &agentv1.SubagentType{Type: &agentv1.SubagentType_Explore{Explore: &agentv1.SubagentTypeExplore{}}}
	state := runAll(t, c, agentrun.ServeOptions{Agent: steps([]agentrun.Step{agentrun.Call(task)})}, say("m1", "delegate"))
	entry := state.GetSubagentStates()["helper"]
	if entry.GetCreatedTimestampMs() != 77 || entry.GetLastUsedTimestampMs() != 1000 || entry.GetSubagentType().GetExplore() == nil || entry.GetConversationState() != nil {
		t.Errorf("the entry is %v", entry)
	}
	id, err := blob.IDFromBytes(state.GetSubagentStateRefs()["helper"])
	must(t, err)
	data, err := c.blobs.Get(ctx, id)
	must(t, err)
	sub := new(agentv1.ConversationStateStructure)
	must(t, proto.Unmarshal(data, sub))
	if len(sub.GetTurns()) != 2 {
		t.Errorf("the subagent has %d turns, want the earlier one and the new one", len(sub.GetTurns()))
	}
}

func TestAPlanKeepsTheModeAndTakesItsFile(t *testing.T) {
	c := newClient(t, nil)
	first := say("m1", "hello")
	first.GetUserMessageAction().GetUserMessage().Mode = agentv1.AgentMode_AGENT_MODE_DEBUG
	state := runAll(t, c, agentrun.ServeOptions{Agent: steps(nil, nil)}, first,
		&agentv1.ConversationAction{Action: &agentv1.ConversationAction_ExecutePlanAction{ExecutePlanAction: &agentv1.ExecutePlanAction{
			KickoffMessageId: proto.String("m2"), PlanFileContent: proto.String("1. from the file"),
		}}})
	if state.GetMode() != agentv1.AgentMode_AGENT_MODE_DEBUG || c.state(t).GetPlan().GetPlan() != "1. from the file" {
		t.Errorf("mode %v, plan %v", state.GetMode(), c.state(t).GetPlan())
	}
}

// A state with calls that another program decided on can be resumed: the agent gets them
// with an unknown outcome.
func TestForeignPendingCallsHaveAnUnknownOutcome(t *testing.T) {
	ctx := context.Background()
	for name, pending := range map[string]string{
		"an unknown tool":   `{"type":"tool-call","toolCallId":"x1","toolName":"teleport","args":{}}`,
		"a tool of another": `{"type":"tool-call","toolCallId":"x1","toolName":"grep","args":{}}`,
		"not even JSON":     `teleport()`,
	} {
		c := newClient(t, nil)
		runAll(t, c, agentrun.ServeOptions{Agent: steps(nil)}, say("m1", "hello"))
		must(t, c.conv.Update(ctx, func(s *agentv1.ConversationStateStructure) error {
			s.PendingToolCalls = []string{pending}
			return nil
		}))
		_, err := c.conv.Save(ctx, nil)
		must(t, err)
		c.h, err = agentrun.NewHandler(ctx, c.blobs, c.conv, nil)
		must(t, err)
		state := runAll(t, c, agentrun.ServeOptions{Agent: steps([]agentrun.Step{agentrun.SayStep{Text: "I see"}})}, agentrun.Resume())
		prompt := strings.Join(c.state(t).GetRootPromptMessagesJson(), "\n")
		if len(state.GetPendingToolCalls()) != 0 || !strings.Contains(prompt, "I see") || !strings.Contains(prompt, "teleport") && !strings.Contains(prompt, "grep") {
			t.Errorf("%s: pending %q, prompt %s", name, state.GetPendingToolCalls(), prompt)
		}
		if name != "not even JSON" && !strings.Contains(prompt, agentrun.ErrUnknownOutcome.Error()) {
			t.Errorf("%s: the prompt has no outcome: %s", name, prompt)
		}
	}
}

// A message that does not fit into a blob of the stream is refused with the limit, by
// either side.
func TestATooLargeMessageNamesTheLimit(t *testing.T) {
	c := newClient(t, nil)
	s := listen(t, agentrun.ServeOptions{Agent: steps(nil)})
	for name, text := range map[string]string{
		"for a request":  strings.Repeat("x", 5<<20),
		"for the prompt": strings.Repeat("\x01", 1<<20), // six bytes each
	} {
		_, err := agentrun.Run(context.Background(), agentrun.Connect(s.client), c.request(say("m1", text)))
		if err == nil || !strings.Contains(err.Error(), "the limit is 4") || errors.Is(err, agentrun.ErrConnectionLost) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
