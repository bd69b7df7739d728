package transcript

import (
	"context"
	"fmt"
	"time"

	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/conversation/graph"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
)

// turn yields the messages of a turn.
func (w *walk) turn(ctx context.Context, t *Transcript, n int, turn *conversation.Turn, at time.Time, subagent string, depth int) error {
	p := place{turn: n, at: at, subagent: subagent, of: t, depth: depth}
	if !turn.ShellCommand.IsNone() || !turn.ShellOutput.IsNone() {
		if err := w.shell(p, turn); err != nil {
			return err
		}
	}
	if !turn.UserMessage.IsNone() {
		if err := w.user(ctx, p, turn.UserMessage); err != nil {
			return err
		}
	}
	for i, item := range turn.Steps {
		p.step = i + 1
		step, err := item.Decode()
		if err != nil {
			err = w.failure(n, idOr("", "turn", n, p.step), subagent, err)
		} else {
			err = w.step(ctx, p, step)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// place is the place of a message.
type place struct {
	turn, step int
	at         time.Time
	subagent   string
	of         *Transcript
	depth      int // of subagents
}

func (p place) message(id string, role Role, kind Kind) Message {
	if id == "" && p.step == 0 {
		id = idOr("", "turn", p.turn)
	}
	return Message{ID: idOr(id, "turn", p.turn, p.step), Turn: p.turn, Role: role, Kind: kind, Time: p.at, Subagent: p.subagent}
}

func (w *walk) shell(p place, turn *conversation.Turn) error {
	m := p.message("", User, Shell)
	m.Tool = &Tool{Name: "Shell", Status: Pending}
	if !turn.ShellCommand.IsNone() {
		command, err := turn.ShellCommand.Decode()
		if err != nil {
			return w.failure(p.turn, m.ID, p.subagent, err)
		}
		m.Text = command.Command
		m.Tool.Input = map[string]any{"command": command.Command}
	}
	if !turn.ShellOutput.IsNone() {
		out, err := turn.ShellOutput.Decode()
		if err != nil {
			return w.failure(p.turn, m.ID, p.subagent, err)
		}
		m.Tool.Output, m.Tool.Exit, m.Tool.Status = joined(out.Stdout, out.Stderr), int(out.ExitCode), Succeeded
		if out.ExitCode != 0 {
			m.Tool.Status = Failed
		}
	}
	if w.opts.WithoutHeavyOutput {
		m.Tool.lighten()
	}
	return w.emit(m)
}

func (w *walk) user(ctx context.Context, p place, item conversation.Item[*agentv1.UserMessage]) error {
	u, err := item.Decode()
	if err != nil {
		return w.failure(p.turn, idOr("", "turn", p.turn), p.subagent, err)
	}
	m := p.message(u.MessageId, User, Text)
	m.Text, m.Simulated = u.Text, u.GetIsSimulatedMsg()
	if m.Text == "" && len(u.TextBlobId) > 0 {
		if m.Text, err = w.text(ctx, u.TextBlobId); err != nil {
			return w.failure(p.turn, m.ID, p.subagent, fmt.Errorf("read text of message %s: %w", m.ID, err))
		}
	}
	return w.emit(m)
}

func (w *walk) step(ctx context.Context, p place, step *agentv1.ConversationStep) error {
	switch s := step.Message.(type) {
	case *agentv1.ConversationStep_AssistantMessage:
		m := p.message("", Assistant, Text)
		m.Text = s.AssistantMessage.GetText()
		return w.emit(m)
	case *agentv1.ConversationStep_ThinkingMessage:
		m := p.message("", Assistant, Thinking)
		m.Text = s.ThinkingMessage.GetText()
		return w.emit(m)
	case *agentv1.ConversationStep_ToolCall:
		return w.call(ctx, p, s.ToolCall)
	}
	m := p.message("", System, Failure)
	m.Text = "a step of a kind unknown to this release"
	return w.emit(m)
}

func (w *walk) call(ctx context.Context, p place, call *agentv1.ToolCall) error {
	m := p.message(call.GetToolCallId(), Assistant, ToolCall)
	tool, whole, err := w.tool(ctx, call)
	if err != nil {
		return w.failure(p.turn, m.ID, p.subagent, err)
	}
	m.Tool = tool
	if at := milliseconds(whole.GetStartedAtMs()); !at.IsZero() {
		m.Time = at
	}
	if err := w.emit(m); err != nil {
		return err
	}
	if tool.Subagent != "" && p.of.has(tool.Subagent) && !w.opts.WithoutSubagents {
		return w.subagent(ctx, p.of, tool.Subagent, p.depth)
	}
	return w.task(ctx, p, idOr(tool.Subagent, m.ID), whole.GetTaskToolCall())
}

// task yields the steps inside a call.
func (w *walk) task(ctx context.Context, p place, subagent string, call *agentv1.TaskToolCall) error {
	steps := call.GetResult().GetSuccess().GetConversationSteps()
	if len(steps) > 0 && p.depth >= graph.MaxNested {
		return fmt.Errorf("%w: more than %d nested subagents", conversation.ErrInvalid, graph.MaxNested)
	}
	p.subagent, p.depth = subagent, p.depth+1
	for i, step := range steps {
		p.step = i + 1
		if err := w.step(ctx, p, step); err != nil {
			return err
		}
	}
	return nil
}
