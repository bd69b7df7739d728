package agentrun

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
)

// run performs the actions of a session.
func (s *session) run(ctx context.Context) error {
	if err := s.prefetched(ctx); err != nil {
		return err
	}
	d, err := newDraft(ctx, s.blobs, s.request.GetConversationState())
	if err != nil {
		return err
	}
	for action := s.next(); action != nil; action = s.next() {
		if err := s.perform(ctx, d, action); err != nil {
			return err
		}
	}
	return nil
}

// prefetched stores the blobs that came with the request, so that they need not be
// fetched.
func (s *session) prefetched(ctx context.Context) error {
	for _, b := range s.request.GetPreFetchedBlobs() {
		id, err := blob.IDFromBytes(b.GetId())
		if err != nil || blob.Sum(b.GetValue()) != id {
			return protocol("a prefetched blob does not match its id")
		}
		if err := s.remote.Put(ctx, blob.Blob{ID: id, Data: b.GetValue(), LocalOnly: true}); err != nil {
			return fmt.Errorf("keep prefetched blob: %w", err)
		}
	}
	return nil
}

// perform performs one action to its end and announces that.
func (s *session) perform(ctx context.Context, d *draft, action *agentv1.ConversationAction) error {
	turn, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	s.mu.Lock()
	s.stop = stop
	if s.cancelled != nil { // after the action was taken
		stop(errCancelled)
	}
	s.mu.Unlock()
	w := &worker{s: s, d: d, agent: s.opts.Agent, action: action, update: s.update}
	w.publish = func(ctx context.Context) error { return s.announce(ctx, d) }
	err := w.begin(turn)
	if err != nil && ctx.Err() == nil && errors.Is(context.Cause(turn), errCancelled) {
		err = s.endCancelledCalls(ctx, w)
	}
	if err != nil {
		return err
	}
	if d.dirty {
		if err := w.publish(ctx); err != nil {
			return err
		}
	}
	return s.update(&agentv1.InteractionUpdate{Message: &agentv1.InteractionUpdate_TurnEnded{TurnEnded: &agentv1.TurnEndedUpdate{}}})
}

// endCancelledCalls ends the calls that a cancelled turn left open.
func (s *session) endCancelledCalls(ctx context.Context, w *worker) error {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Grace)
	defer cancel()
	s.mu.Lock()
	resolutions := s.cancelled.GetInterruptedPendingToolCallResolutions()
	s.mu.Unlock()
	if err := w.endCalls(resolutions); err != nil {
		return err
	}
	return w.publish(ctx)
}

// begin starts an action.
func (w *worker) begin(ctx context.Context) error {
	switch a := w.action.GetAction().(type) {
	case *agentv1.ConversationAction_UserMessageAction:
		return w.userMessage(ctx, a.UserMessageAction)
	case *agentv1.ConversationAction_ResumeAction:
		return w.drive(ctx)
	case *agentv1.ConversationAction_CancelAction:
		return w.endCalls(a.CancelAction.GetInterruptedPendingToolCallResolutions())
	case *agentv1.ConversationAction_SummarizeAction:
		return w.summarize(ctx)
	case *agentv1.ConversationAction_ShellCommandAction:
		return w.shellCommand(ctx, a.ShellCommandAction)
	case *agentv1.ConversationAction_StartPlanAction:
		w.d.state.Mode = agentv1.AgentMode_AGENT_MODE_PLAN.Enum()
		return w.message(ctx, a.StartPlanAction.GetUserMessage())
	case *agentv1.ConversationAction_ExecutePlanAction:
		return w.executePlan(ctx, a.ExecutePlanAction)
	case *agentv1.ConversationAction_AsyncAskQuestionCompletionAction:
		return w.answered(ctx, a.AsyncAskQuestionCompletionAction)
	case *agentv1.ConversationAction_CancelSubagentAction:
		w.endSubagent(a.CancelSubagentAction.GetSubagentId(), agentv1.SubagentRunStatus_SUBAGENT_RUN_STATUS_ABORTED)
		return nil
	case *agentv1.ConversationAction_BackgroundTaskCompletionAction:
		return w.tasksCompleted(ctx, a.BackgroundTaskCompletionAction)
	case *agentv1.ConversationAction_BackgroundShellAction, *agentv1.ConversationAction_BackgroundSubagentAction:
		_, err := w.s.exec(ctx, backgroundRequest(w.action))
		if errors.Is(err, errNoResult) {
			return nil // the action has no reply
		}
		return err
	}
	return protocol("unknown action %T", w.action.GetAction())
}

func (w *worker) userMessage(ctx context.Context, a *agentv1.UserMessageAction) error {
	if err := w.endCalls(a.GetInterruptedPendingToolCallResolutions()); err != nil {
		return err
	}
	for _, m := range a.GetPrependUserMessages() {
		if err := w.checkMessage(m); err != nil {
			return err
		}
		if err := w.d.beginTurn(m); err != nil {
			return err
		}
		w.d.timed(w.s.opts.Now())
	}
	return w.message(ctx, a.GetUserMessage())
}

// message begins a turn and drives it. If the message already began the last turn,
// the client has sent it again without knowing that; the turn continues.
func (w *worker) message(ctx context.Context, msg *agentv1.UserMessage) error {
	if msg == nil {
		return protocol("the action has no message")
	}
	if id := msg.GetMessageId(); id != "" && w.d.user.GetMessageId() == id {
		return w.drive(ctx)
	}
	if err := w.checkMessage(msg); err != nil {
		return err
	}
	if err := w.endCalls(nil); err != nil {
		return err
	}
	if err := w.d.beginTurn(msg); err != nil {
		return err
	}
	w.d.timed(w.s.opts.Now())
	if err := w.publish(ctx); err != nil {
		return err
	}
	err := w.update(&agentv1.InteractionUpdate{Message: &agentv1.InteractionUpdate_UserMessageAppended{
		UserMessageAppended: &agentv1.UserMessageAppendedUpdate{UserMessage: msg},
	}})
	if err != nil {
		return err
	}
	return w.drive(ctx)
}

// checkMessage rejects a message that does not fit into one blob of the stream, as a
// message or as a part of the prompt.
func (w *worker) checkMessage(msg *agentv1.UserMessage) error {
	size := proto.Size(msg)
	if quoted, err := json.Marshal(msg.GetText()); err == nil {
		size = max(size, len(quoted))
	}
	if limit := w.s.maxContent(); size > limit {
		return protocol("the message of the user has %d bytes; the limit is %d", size, limit)
	}
	return nil
}

// simulated starts a turn with a message that the user did not write.
func (w *worker) simulated(ctx context.Context, id, text string, reason agentv1.SimulatedMsgReason) error {
	return w.message(ctx, &agentv1.UserMessage{Text: text, MessageId: id, IsSimulatedMsg: proto.Bool(true), SimulatedMsgReason: &reason})
}

func (w *worker) shellCommand(ctx context.Context, a *agentv1.ShellCommandAction) error {
	execID := a.GetExecId()
	if execID == "" {
		execID = w.callID("command", len(w.d.state.Turns))
	}
	msg, err := w.s.exec(ctx, &agentv1.ExecServerMessage{ExecId: execID, Message: &agentv1.ExecServerMessage_ShellArgs{
		ShellArgs: &agentv1.ShellArgs{Command: a.GetShellCommand().GetCommand()},
	}})
	var thrown *thrownError
	output := &agentv1.ShellOutput{}
	switch result := msg.GetShellResult(); {
	case errors.As(err, &thrown):
		output.Stderr, output.ExitCode = thrown.text, -1
	case err != nil:
		return err
	case result.GetSuccess() != nil:
		output.Stdout, output.Stderr, output.ExitCode = result.GetSuccess().GetStdout(), result.GetSuccess().GetStderr(), result.GetSuccess().GetExitCode()
	case result.GetFailure() != nil:
		output.Stdout, output.Stderr, output.ExitCode = result.GetFailure().GetStdout(), result.GetFailure().GetStderr(), result.GetFailure().GetExitCode()
	default:
		output.Stderr, output.ExitCode = "the command was not run", -1
	}
	return w.d.addShellTurn(a.GetShellCommand(), output)
}

func (w *worker) executePlan(ctx context.Context, a *agentv1.ExecutePlanAction) error {
	if mode := a.GetExecutionMode(); mode != agentv1.AgentMode_AGENT_MODE_UNSPECIFIED {
		w.d.state.Mode = mode.Enum()
	}
	plan := a.GetPlan().GetPlan()
	if plan == "" {
		plan = a.GetPlanFileContent()
	}
	if plan != "" {
		if err := w.d.setPlan(plan); err != nil {
			return err
		}
	}
	return w.simulated(ctx, a.GetKickoffMessageId(), "Carry out the plan.", agentv1.SimulatedMsgReason_SIMULATED_MSG_REASON_PLAN_EXECUTION)
}

// answered adds the answer to a question to the last turn, which continues.
func (w *worker) answered(ctx context.Context, a *agentv1.AsyncAskQuestionCompletionAction) error {
	call := &agentv1.ToolCall{
		ToolCallId: proto.String(a.GetOriginalToolCallId()),
		Tool: &agentv1.ToolCall_AskQuestionToolCall{AskQuestionToolCall: &agentv1.AskQuestionToolCall{
			Args: a.GetOriginalArgs(), Result: a.GetResult(),
		}},
	}
	if err := w.completed(call); err != nil {
		return err
	}
	if err := w.publish(ctx); err != nil {
		return err
	}
	return w.drive(ctx)
}

func (w *worker) tasksCompleted(ctx context.Context, a *agentv1.BackgroundTaskCompletionAction) error {
	var text strings.Builder
	for _, c := range a.GetCompletions() {
		status := strings.ToLower(strings.TrimPrefix(c.GetStatus().String(), "BACKGROUND_TASK_STATUS_"))
		fmt.Fprintf(&text, "Background task %q (%s) ended: %s. %s\n", c.GetTitle(), c.GetTaskId(), status, c.GetDetail())
		run := agentv1.SubagentRunStatus_SUBAGENT_RUN_STATUS_ERROR
		if c.GetStatus() == agentv1.BackgroundTaskStatus_BACKGROUND_TASK_STATUS_SUCCESS {
			run = agentv1.SubagentRunStatus_SUBAGENT_RUN_STATUS_SUCCESS
		}
		if c.GetSubagentId() != "" {
			w.endSubagent(c.GetSubagentId(), run)
		}
	}
	return w.simulated(ctx, "", text.String(), agentv1.SimulatedMsgReason_SIMULATED_MSG_REASON_BACKGROUND_TASK_COMPLETION)
}

// summarize requests only a summary from the agent.
func (w *worker) summarize(ctx context.Context) error {
	if err := w.update(&agentv1.InteractionUpdate{Message: &agentv1.InteractionUpdate_SummaryStarted{SummaryStarted: &agentv1.SummaryStartedUpdate{}}}); err != nil {
		return err
	}
	step, err := w.agent.Next(ctx, w.turn())
	if err != nil {
		return fmt.Errorf("next step: %w", err)
	}
	summary, ok := step.(SummaryStep)
	if !ok {
		return fmt.Errorf("summarize: %w by this agent", ErrUnsupported)
	}
	return w.apply(ctx, summary)
}

// backgroundRequest returns the request to the client for an action that sends
// something to the background.
func backgroundRequest(action *agentv1.ConversationAction) *agentv1.ExecServerMessage {
	req := &agentv1.ExecServerMessage{}
	if a := action.GetBackgroundShellAction(); a != nil {
		req.Message = &agentv1.ExecServerMessage_ForceBackgroundShellArgs{ForceBackgroundShellArgs: &agentv1.ForceBackgroundShellArgs{ToolCallId: a.GetToolCallId()}}
	} else {
		a := action.GetBackgroundSubagentAction()
		req.Message = &agentv1.ExecServerMessage_ForceBackgroundSubagentArgs{ForceBackgroundSubagentArgs: &agentv1.ForceBackgroundSubagentArgs{ToolCallId: a.GetToolCallId()}}
	}
	return req
}
