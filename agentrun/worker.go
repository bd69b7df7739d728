package agentrun

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
)

// worker drives an agent, or a subagent, through one action.
type worker struct {
	s       *session
	d       *draft
	agent   Agent
	action  *agentv1.ConversationAction
	update  func(*agentv1.InteractionUpdate) error
	publish func(context.Context) error // announces the draft
	depth   int
	name    string // of a subagent
	task    *agentv1.TaskArgs
}

// turn returns the input of the agent.
func (w *worker) turn() *Turn {
	t := &Turn{
		Conversation: w.s.request.GetConversationId(), Action: w.action, Request: w.s.request,
		Number: len(w.d.state.Turns), State: proto.CloneOf(w.d.state), Blobs: w.d.blobs, Depth: w.depth, Task: w.task,
	}
	if w.d.user != nil {
		t.User = proto.CloneOf(w.d.user)
	}
	for _, s := range w.d.steps {
		t.Steps = append(t.Steps, proto.CloneOf(s))
	}
	return t
}

// drive continues the last turn until the agent is done. Pending calls come first,
// because the agent decided on them before.
func (w *worker) drive(ctx context.Context) error {
	if w.d.turn.GetAgentConversationTurn() == nil {
		return nil // no turn, or the turn of a command
	}
	for {
		if err := w.pending(ctx); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		step, err := w.agent.Next(ctx, w.turn())
		if err != nil {
			return fmt.Errorf("next step: %w", err)
		}
		if counted, ok := step.(CountedStep); ok {
			w.d.state.TokenDetails, w.d.dirty = proto.CloneOf(counted.Tokens), true
			step = counted.Step
		}
		if _, done := step.(Done); done {
			return nil
		}
		if err := w.apply(ctx, step); err != nil {
			return err
		}
	}
}

// apply adds a step to the state and announces it.
func (w *worker) apply(ctx context.Context, step Step) error {
	id := uint64(len(w.d.steps))
	err := w.update(&agentv1.InteractionUpdate{Message: &agentv1.InteractionUpdate_StepStarted{StepStarted: &agentv1.StepStartedUpdate{StepId: id}}})
	if err != nil {
		return err
	}
	switch s := step.(type) {
	case SayStep:
		err = w.say(s.Text)
	case ThinkStep:
		err = w.think(s.Text)
	case CallStep:
		err = w.decide(s.Text, s.Calls)
	case SummaryStep:
		err = w.summary(s.Text)
	case PlanStep:
		err = w.plan(s.Text)
	default:
		err = fmt.Errorf("step %T: %w", step, ErrUnsupported)
	}
	if err != nil {
		return err
	}
	if err := w.publish(ctx); err != nil {
		return err
	}
	return w.update(&agentv1.InteractionUpdate{Message: &agentv1.InteractionUpdate_StepCompleted{StepCompleted: &agentv1.StepCompletedUpdate{StepId: id}}})
}

func (w *worker) say(text string) error {
	err := w.update(&agentv1.InteractionUpdate{Message: &agentv1.InteractionUpdate_TextDelta{TextDelta: &agentv1.TextDeltaUpdate{Text: text}}})
	if err != nil {
		return err
	}
	if err := w.d.prompt("assistant", textOf(text)); err != nil {
		return err
	}
	return w.d.addStep(&agentv1.ConversationStep{Message: &agentv1.ConversationStep_AssistantMessage{AssistantMessage: &agentv1.AssistantMessage{Text: text}}})
}

func (w *worker) think(text string) error {
	err := w.update(&agentv1.InteractionUpdate{Message: &agentv1.InteractionUpdate_ThinkingDelta{ThinkingDelta: &agentv1.ThinkingDeltaUpdate{Text: text}}})
	if err != nil {
		return err
	}
	err = w.update(&agentv1.InteractionUpdate{Message: &agentv1.InteractionUpdate_ThinkingCompleted{ThinkingCompleted: &agentv1.ThinkingCompletedUpdate{}}})
	if err != nil {
		return err
	}
	return w.d.addStep(&agentv1.ConversationStep{Message: &agentv1.ConversationStep_ThinkingMessage{ThinkingMessage: &agentv1.ThinkingMessage{Text: text}}})
}

func (w *worker) summary(text string) error {
	err := w.update(&agentv1.InteractionUpdate{Message: &agentv1.InteractionUpdate_Summary{Summary: &agentv1.SummaryUpdate{Summary: text}}})
	if err != nil {
		return err
	}
	if err := w.d.summarize(text); err != nil {
		return err
	}
	return w.update(&agentv1.InteractionUpdate{Message: &agentv1.InteractionUpdate_SummaryCompleted{SummaryCompleted: &agentv1.SummaryCompletedUpdate{}}})
}

// plan is a separate step, so that the agent sees in the turn that it was made.
func (w *worker) plan(text string) error {
	if err := w.d.setPlan(text); err != nil {
		return err
	}
	return w.completed(&agentv1.ToolCall{
		ToolCallId: proto.String(w.callID("plan", len(w.d.steps))),
		Tool: &agentv1.ToolCall_CreatePlanToolCall{CreatePlanToolCall: &agentv1.CreatePlanToolCall{
			Args:   &agentv1.CreatePlanArgs{Plan: text},
			Result: &agentv1.CreatePlanResult{Result: &agentv1.CreatePlanResult_Success{Success: &agentv1.CreatePlanSuccess{}}},
		}},
	})
}

// decide records calls as pending. They are executed once that state is announced: a
// resumed run then requests the same calls under the same ids.
func (w *worker) decide(text string, calls []*agentv1.ToolCall) error {
	if len(calls) == 0 {
		return invalid("a step without calls")
	}
	if text != "" {
		if err := w.say(text); err != nil {
			return err
		}
	}
	for i, call := range calls {
		call = proto.CloneOf(call)
		if call.GetToolCallId() == "" {
			call.ToolCallId = proto.String(w.callID("call", len(w.d.steps)+i))
		}
		part, err := encodePending(call)
		if err != nil {
			return err
		}
		w.d.state.PendingToolCalls = append(w.d.state.PendingToolCalls, part)
		w.d.dirty = true
	}
	return nil
}

// pending executes the pending calls.
func (w *worker) pending(ctx context.Context) error {
	for len(w.d.state.PendingToolCalls) > 0 {
		part := w.d.state.PendingToolCalls[0]
		call, err := decodePending(part)
		if errors.Is(err, ErrUnsupported) {
			if err := w.foreign(ctx, part); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		err = w.update(&agentv1.InteractionUpdate{Message: &agentv1.InteractionUpdate_ToolCallStarted{
			ToolCallStarted: &agentv1.ToolCallStartedUpdate{CallId: call.GetToolCallId(), ToolCall: proto.CloneOf(call)},
		}})
		if err != nil {
			return err
		}
		err = w.call(ctx, call)
		if errors.Is(err, ErrUnsupported) && w.d.inherited > 0 {
			if err := w.foreign(ctx, part); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		w.taken()
		if err := w.completed(call); err != nil {
			return err
		}
		if err := w.publish(ctx); err != nil {
			return err
		}
		err = w.update(&agentv1.InteractionUpdate{Message: &agentv1.InteractionUpdate_ToolCallCompleted{
			ToolCallCompleted: &agentv1.ToolCallCompletedUpdate{CallId: call.GetToolCallId(), ToolCall: proto.CloneOf(call)},
		}})
		if err != nil {
			return err
		}
	}
	return nil
}

// taken removes the first pending call.
func (w *worker) taken() {
	w.d.state.PendingToolCalls = w.d.state.PendingToolCalls[1:]
	w.d.inherited = max(0, w.d.inherited-1)
}

// foreign ends a pending call of another program, which cannot be executed here. The
// agent gets it with an unknown outcome and decides what follows.
func (w *worker) foreign(ctx context.Context, part string) error {
	w.taken()
	if err := w.d.prompt("assistant", rawPart(part)); err != nil {
		return err
	}
	if result, named := unknownOutcome(part); named {
		if err := w.d.prompt("tool", result); err != nil {
			return err
		}
	}
	return w.publish(ctx)
}

// completed adds a call with its result to the turn and the prompt.
func (w *worker) completed(call *agentv1.ToolCall) error {
	asked, result, err := promptParts(call)
	if err != nil {
		return err
	}
	if err := w.d.prompt("assistant", asked); err != nil {
		return err
	}
	if err := w.d.prompt("tool", result); err != nil {
		return err
	}
	return w.d.addStep(&agentv1.ConversationStep{Message: &agentv1.ConversationStep_ToolCall{ToolCall: call}})
}

// callID names the n-th thing of a kind in the last turn. It depends only on the
// state, so that a repeated decision gets the same name.
func (w *worker) callID(kind string, n int) string {
	seed := fmt.Sprintf("%s\x00%s\x00%s\x00%d\x00%d", w.s.request.GetConversationId(), w.name, w.d.user.GetMessageId(), len(w.d.state.Turns), n)
	return kind + "_" + blob.Sum([]byte(seed)).String()[:24]
}

// execID identifies the next request to the client. It is not the call's own id:
// models reuse ids for several calls, and the client takes equal requests for
// repetitions.
func (w *worker) execID() string {
	return w.callID(fmt.Sprintf("exec%d", w.depth), len(w.d.steps))
}

// endCalls ends calls that will not be executed: with a result from the client, or
// without one.
func (w *worker) endCalls(resolutions *agentv1.InterruptedPendingToolCallResolutions) error {
	waiting := w.d.state.PendingToolCalls
	if len(waiting) == 0 {
		return nil
	}
	w.d.state.PendingToolCalls = nil
	w.d.dirty = true
	for _, part := range waiting {
		call, err := decodePending(part)
		if err != nil || w.d.turn.GetAgentConversationTurn() == nil {
			// Another program's call: it stays in the prompt.
			if err := w.d.prompt("assistant", rawPart(part)); err != nil {
				return err
			}
			continue
		}
		for _, r := range resolutions.GetResolutions() {
			if r.GetToolCallId() == call.GetToolCallId() {
				resolve(call, r)
			}
		}
		if err := w.completed(call); err != nil {
			return err
		}
	}
	return nil
}
