package agentrun_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/agentrun"
	"github.com/stet-dev/stet/blob"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
)

// act runs actions one after another and returns the state after each.
func act(t *testing.T, lines [][]agentrun.Line, actions ...*agentv1.ConversationAction) (*client, *agentv1.ConversationState) {
	t.Helper()
	s := listen(t, agentrun.ServeOptions{Agent: agentrun.NewScripted(lines...)})
	c := newClient(t, nil)
	for _, a := range actions {
		_, err := agentrun.Run(context.Background(), agentrun.Connect(s.client), c.request(a))
		must(t, err)
	}
	return c, c.state(t)
}

func TestAShellCommandOfTheUser(t *testing.T) {
	c, state := act(t, nil, &agentv1.ConversationAction{Action: &agentv1.ConversationAction_ShellCommandAction{
		ShellCommandAction: &agentv1.ShellCommandAction{ShellCommand: &agentv1.ShellCommand{Command: "ls"}, ExecId: "x1"},
	}})
	turn := state.GetTurns()[0].GetShellConversationTurn()
	if turn.GetShellCommand().GetCommand() != "ls" || turn.GetShellOutput().GetStdout() != "ran ls" || c.tools.counts()["x1"] != 1 {
		t.Errorf("the turn is %v, executed %v", turn, c.tools.counts())
	}
}

func TestPlansAreMadeAndCarriedOut(t *testing.T) {
	lines := [][]agentrun.Line{{{Plan: "1. retry"}, {Say: "that is the plan"}}, {{Shell: "make"}}}
	_, state := act(t, lines,
		&agentv1.ConversationAction{Action: &agentv1.ConversationAction_StartPlanAction{StartPlanAction: &agentv1.StartPlanAction{UserMessage: message("m1", "plan it")}}},
		&agentv1.ConversationAction{Action: &agentv1.ConversationAction_ExecutePlanAction{ExecutePlanAction: &agentv1.ExecutePlanAction{
			KickoffMessageId: proto.String("m2"), ExecutionMode: agentv1.AgentMode_AGENT_MODE_AGENT,
		}}},
	)
	if state.GetPlan().GetPlan() != "1. retry" || messages(state) != "m1 m2" {
		t.Errorf("plan %v, messages %q", state.GetPlan(), messages(state))
	}
	second := state.GetTurns()[1].GetAgentConversationTurn()
	if second.GetUserMessage().GetSimulatedMsgReason() != agentv1.SimulatedMsgReason_SIMULATED_MSG_REASON_PLAN_EXECUTION || len(second.GetSteps()) != 1 {
		t.Errorf("the second turn is %v", second)
	}
}

func TestSummarizing(t *testing.T) {
	_, state := act(t, [][]agentrun.Line{{{Say: "hi"}}}, say("m1", "hello"),
		&agentv1.ConversationAction{Action: &agentv1.ConversationAction_SummarizeAction{SummarizeAction: &agentv1.SummarizeAction{}}})
	if state.GetSummary().GetSummary() != "A conversation of 1 turns." {
		t.Errorf("the summary is %v", state.GetSummary())
	}
	if a := state.GetSummaryArchives(); len(a) != 1 || len(a[0].GetSummarizedMessages()) != 2 || len(state.GetRootPromptMessagesJson()) != 1 {
		t.Errorf("archives %v, prompt %v", a, state.GetRootPromptMessagesJson())
	}
}

func TestAnAnswerAndEndedTasks(t *testing.T) {
	_, state := act(t, [][]agentrun.Line{{{Say: "asking"}, {Say: "filled by the answer"}, {Say: "thanks"}}}, say("m1", "hello"),
		&agentv1.ConversationAction{Action: &agentv1.ConversationAction_AsyncAskQuestionCompletionAction{
			AsyncAskQuestionCompletionAction: &agentv1.AsyncAskQuestionCompletionAction{OriginalToolCallId: "q1", OriginalArgs: &agentv1.AskQuestionArgs{Title: "which?"}},
		}},
		&agentv1.ConversationAction{Action: &agentv1.ConversationAction_BackgroundTaskCompletionAction{
			BackgroundTaskCompletionAction: &agentv1.BackgroundTaskCompletionAction{Completions: []*agentv1.BackgroundTaskCompletion{{TaskId: "b1", Title: "build", Status: agentv1.BackgroundTaskStatus_BACKGROUND_TASK_STATUS_SUCCESS}}},
		}},
	)
	steps := state.GetTurns()[0].GetAgentConversationTurn().GetSteps()
	if len(steps) != 4 || steps[3].GetToolCall().GetAskQuestionToolCall().GetArgs().GetTitle() != "which?" {
		t.Errorf("steps are %v", steps)
	}
	text := state.GetTurns()[1].GetAgentConversationTurn().GetUserMessage().GetText()
	if !strings.Contains(text, `"build" (b1) ended: success`) {
		t.Errorf("the simulated message is %q", text)
	}
}

func TestMessagesThatComeBefore(t *testing.T) {
	action := say("m3", "third")
	action.GetUserMessageAction().PrependUserMessages = []*agentv1.UserMessage{message("m1", "first"), message("m2", "second")}
	_, state := act(t, [][]agentrun.Line{nil, nil, {{Say: "hi"}}}, action)
	if messages(state) != "m1 m2 m3" || len(state.GetTurns()[2].GetAgentConversationTurn().GetSteps()) != 1 {
		t.Errorf("turns are %v", state.GetTurns())
	}
}

// While a command runs, the user sends it to the background and says something.
func TestActionsDuringATurn(t *testing.T) {
	s := listen(t, agentrun.ServeOptions{Agent: agentrun.NewScripted([]agentrun.Line{{Shell: "serve"}, {Say: "it runs"}}, []agentrun.Line{{Say: "hello again"}})})
	c := newClient(t, nil)
	actions := make(chan *agentv1.ConversationAction, 2)
	background := make(chan struct{})
	c.tools.block = func(ctx context.Context, req *agentv1.ExecServerMessage) error {
		if req.GetForceBackgroundShellArgs().GetToolCallId() == "the call" {
			close(background)
			return nil
		}
		actions <- say("m2", "one more")
		actions <- &agentv1.ConversationAction{Action: &agentv1.ConversationAction_BackgroundShellAction{BackgroundShellAction: &agentv1.BackgroundShellAction{ToolCallId: "the call"}}}
		select {
		case <-background:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	req := c.request(say("m1", "hello"))
	req.Actions = actions
	_, err := agentrun.Run(context.Background(), agentrun.Connect(s.client), req)
	must(t, err)
	if got := messages(c.state(t)); got != "m1 m2" {
		t.Errorf("messages are %q", got)
	}
}

func TestASubagentIsCancelledAlone(t *testing.T) {
	sub := &agentrun.SubScript{Prompt: "look", Lines: []agentrun.Line{{Shell: "sleep"}, {Say: "never"}}}
	s := listen(t, agentrun.ServeOptions{Agent: agentrun.NewScripted([]agentrun.Line{{Subagent: sub}, {Say: "without it, then"}})})
	c := newClient(t, nil)
	actions := make(chan *agentv1.ConversationAction, 1)
	c.tools.block = func(ctx context.Context, _ *agentv1.ExecServerMessage) error {
		name := ""
		for id := range c.h.Latest().GetSubagentStateRefs() {
			name = id
		}
		actions <- &agentv1.ConversationAction{Action: &agentv1.ConversationAction_CancelSubagentAction{CancelSubagentAction: &agentv1.CancelSubagentAction{SubagentId: name}}}
		<-ctx.Done()
		return ctx.Err()
	}
	req := c.request(say("m1", "hello"))
	req.Actions = actions
	_, err := agentrun.Run(context.Background(), agentrun.Connect(s.client), req)
	must(t, err)
	steps := c.state(t).GetTurns()[0].GetAgentConversationTurn().GetSteps()
	if len(steps) != 2 || !strings.Contains(steps[0].GetToolCall().GetTaskToolCall().GetResult().GetError().GetError(), "cancelled") {
		t.Errorf("steps are %v", steps)
	}
	for _, run := range c.h.Latest().GetSubagentRunsByParentToolCallId() {
		if run.GetStatus() != agentv1.SubagentRunStatus_SUBAGENT_RUN_STATUS_ABORTED {
			t.Errorf("the subagent's run is %v", run)
		}
	}
}

// A new message finds a call that an interruption left open, with its result.
func TestInterruptedCallsAreSettled(t *testing.T) {
	s := listen(t, agentrun.ServeOptions{Agent: agentrun.NewScripted([]agentrun.Line{{Shell: "one"}}, []agentrun.Line{{Say: "hi"}})})
	c := newClient(t, nil)
	ctx, cancel := context.WithCancel(context.Background())
	c.tools.block = func(ctx context.Context, _ *agentv1.ExecServerMessage) error {
		s.breakAll()
		cancel()
		<-ctx.Done()
		return ctx.Err()
	}
	req := c.request(say("m1", "hello"))
	req.Attempts = -1
	if _, err := agentrun.Run(ctx, agentrun.Connect(s.client), req); err == nil {
		t.Fatal("the run was not interrupted")
	}
	pending := c.h.Latest().GetPendingToolCalls()
	if len(pending) != 1 || !strings.Contains(pending[0], `"toolName":"shell","args":{"command":"one"}`) {
		t.Fatalf("pending calls are %v", pending)
	}
	id := strings.Split(strings.Split(pending[0], `"toolCallId":"`)[1], `"`)[0]
	action := say("m2", "never mind")
	action.GetUserMessageAction().InterruptedPendingToolCallResolutions = &agentv1.InterruptedPendingToolCallResolutions{
		Resolutions: []*agentv1.InterruptedPendingToolCallResolution{{ToolCallId: id, Resolution: &agentv1.InterruptedPendingToolCallResolution_ShellResult{
			ShellResult: &agentv1.ShellResult{Result: &agentv1.ShellResult_Success{Success: &agentv1.ShellSuccess{Stdout: "half"}}},
		}}},
	}
	c.tools.block = nil
	_, err := agentrun.Run(context.Background(), agentrun.Connect(s.client), c.request(action))
	must(t, err)
	state := c.state(t)
	steps := state.GetTurns()[0].GetAgentConversationTurn().GetSteps()
	if len(steps) != 1 || steps[0].GetToolCall().GetShellToolCall().GetResult().GetSuccess().GetStdout() != "half" || len(state.GetPendingToolCalls()) != 0 {
		t.Errorf("steps are %v, pending %v", steps, state.GetPendingToolCalls())
	}
	if messages(state) != "m1 m2" {
		t.Errorf("messages are %q", messages(state))
	}
}

// What has no place in a run is refused, with a code that is not retried.
func TestHostileFrames(t *testing.T) {
	s := listen(t, agentrun.ServeOptions{Agent: agentrun.NewScripted(everything())})
	run := func(r *agentv1.AgentRunRequest) *agentv1.AgentClientMessage {
		return &agentv1.AgentClientMessage{Message: &agentv1.AgentClientMessage_RunRequest{RunRequest: r}}
	}
	for name, c := range map[string]struct {
		frames []*agentv1.AgentClientMessage
		want   connect.Code
	}{
		"an empty frame":     {[]*agentv1.AgentClientMessage{{}}, connect.CodeInvalidArgument},
		"a result first":     {[]*agentv1.AgentClientMessage{{Message: &agentv1.AgentClientMessage_ExecClientMessage{}}}, connect.CodeInvalidArgument},
		"no action":          {[]*agentv1.AgentClientMessage{run(&agentv1.AgentRunRequest{})}, connect.CodeInvalidArgument},
		"an empty message":   {[]*agentv1.AgentClientMessage{run(&agentv1.AgentRunRequest{Action: &agentv1.ConversationAction{Action: &agentv1.ConversationAction_UserMessageAction{}}})}, connect.CodeInvalidArgument},
		"a false blob":       {[]*agentv1.AgentClientMessage{run(&agentv1.AgentRunRequest{Action: say("m1", "x"), PreFetchedBlobs: []*agentv1.PreFetchedBlob{{Id: blob.Sum(nil).Bytes(), Value: []byte("x")}}})}, connect.CodeInvalidArgument},
		"an id that is none": {[]*agentv1.AgentClientMessage{run(&agentv1.AgentRunRequest{Action: agentrun.Resume(), ConversationState: &agentv1.ConversationStateStructure{Turns: [][]byte{{1}}}})}, connect.CodeInvalidArgument},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			stream, err := s.client.Run(ctx)
			must(t, err)
			defer func() { _ = stream.CloseRequest() }()
			for _, f := range c.frames {
				if err := stream.Send(f); err != nil && !errors.Is(err, io.EOF) {
					must(t, err)
				}
			}
			for err == nil {
				_, err = stream.Receive()
			}
			if got := connect.CodeOf(err); got != c.want {
				t.Errorf("code %v (%v), want %v", got, err, c.want)
			}
		})
	}
}

// Blobs that come with the request are not asked for.
func TestPrefetchedBlobs(t *testing.T) {
	s := listen(t, agentrun.ServeOptions{Agent: agentrun.NewScripted([]agentrun.Line{{Say: "hi"}}, []agentrun.Line{{Say: "ho"}})})
	c := newClient(t, nil)
	_, err := agentrun.Run(context.Background(), agentrun.Connect(s.client), c.request(say("m1", "hello")))
	must(t, err)
	req := c.request(say("m2", "hello"))
	req.Template = &agentv1.AgentRunRequest{}
	must(t, c.mem.List(context.Background(), blob.ID{}, func(info blob.Info) error {
		data, err := c.mem.Get(context.Background(), info.ID)
		req.Template.PreFetchedBlobs = append(req.Template.PreFetchedBlobs, &agentv1.PreFetchedBlob{Id: info.ID.Bytes(), Value: data})
		return err
	}))
	_, err = agentrun.Run(context.Background(), agentrun.Connect(s.client), req)
	must(t, err)
	if messages(c.state(t)) != "m1 m2" {
		t.Errorf("messages are %q", messages(c.state(t)))
	}
}
