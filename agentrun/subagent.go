package agentrun

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation/wirelimit"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
)

// subagent runs a task in a subagent. Its state is part of the parent's state, so a
// resumed run continues in the middle of it.
func (w *worker) subagent(ctx context.Context, id string, t *agentv1.TaskToolCall) error {
	if w.depth >= maxDepth {
		t.Result = taskError(fmt.Sprintf("subagents may not be nested more than %d deep", maxDepth))
		return nil
	}
	name := t.GetArgs().GetAgentId()
	if name == "" {
		name = id
	}
	sub, err := w.subworker(ctx, id, name, t.GetArgs())
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	w.s.mu.Lock()
	w.s.subagents[name] = stop
	w.s.mu.Unlock()
	defer func() {
		w.s.mu.Lock()
		delete(w.s.subagents, name)
		w.s.mu.Unlock()
	}()
	err = sub.message(ctx, &agentv1.UserMessage{Text: t.GetArgs().GetPrompt(), MessageId: id})
	return w.taskEnded(ctx, err, sub, id, t)
}

// taskEnded records how a subagent ended. Its failure is a result for the agent; the
// end of the whole run is not.
func (w *worker) taskEnded(ctx context.Context, err error, sub *worker, id string, t *agentv1.TaskToolCall) error {
	status := agentv1.SubagentRunStatus_SUBAGENT_RUN_STATUS_SUCCESS
	var failure *Failure
	switch {
	case err == nil:
		success := &agentv1.TaskSuccess{AgentId: proto.String(sub.name)}
		for _, s := range sub.d.steps {
			success.ConversationSteps = append(success.ConversationSteps, proto.CloneOf(s))
		}
		t.Result = &agentv1.TaskResult{Result: &agentv1.TaskResult_Success{Success: success}}
	case errors.As(err, &failure):
		status = agentv1.SubagentRunStatus_SUBAGENT_RUN_STATUS_ERROR
		t.Result = taskError(failure.Text)
	case errors.Is(context.Cause(ctx), errCancelled) && !w.s.turnCancelled():
		status = agentv1.SubagentRunStatus_SUBAGENT_RUN_STATUS_ABORTED
		t.Result = taskError("the subagent was cancelled")
	default:
		return err
	}
	w.noteSubagent(id, sub.name, status)
	return nil
}

func taskError(text string) *agentv1.TaskResult {
	return &agentv1.TaskResult{Result: &agentv1.TaskResult_Error{Error: &agentv1.TaskError{Error: text}}}
}

func (s *session) turnCancelled() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cancelled != nil
}

// subworker returns the worker of a subagent, with its last state.
func (w *worker) subworker(ctx context.Context, call, name string, task *agentv1.TaskArgs) (*worker, error) {
	state := &agentv1.ConversationStateStructure{}
	if inside := w.d.state.SubagentStates[name].GetConversationState(); inside != nil {
		state = inside // kept by value, by another program
	}
	if ref := w.d.state.SubagentStateRefs[name]; len(ref) > 0 {
		state = &agentv1.ConversationStateStructure{}
		id, err := blob.IDFromBytes(ref)
		if err != nil {
			return nil, fmt.Errorf("load subagent: %w", err)
		}
		raw, err := w.d.blobs.Get(ctx, id)
		if err == nil {
			err = wirelimit.Unmarshal(raw, state, stateLimits)
		}
		if err != nil {
			return nil, fmt.Errorf("load subagent: %w", err)
		}
	}
	d, err := newDraft(ctx, w.d.blobs, state)
	if err != nil {
		return nil, fmt.Errorf("load subagent: %w", err)
	}
	agent := w.agent
	if s, ok := agent.(Spawner); ok {
		if agent, err = s.Subagent(ctx, task); err != nil {
			return nil, fmt.Errorf("make subagent: %w", err)
		}
	}
	sub := &worker{s: w.s, d: d, agent: agent, action: w.action, depth: w.depth + 1, name: name, task: task}
	sub.update = func(u *agentv1.InteractionUpdate) error {
		return w.update(&agentv1.InteractionUpdate{Message: &agentv1.InteractionUpdate_ToolCallDelta{ToolCallDelta: &agentv1.ToolCallDeltaUpdate{
			CallId: call,
			ToolCallDelta: &agentv1.ToolCallDelta{Delta: &agentv1.ToolCallDelta_TaskToolCallDelta{
				TaskToolCallDelta: &agentv1.TaskToolCallDelta{InteractionUpdate: u},
			}},
		}}})
	}
	sub.publish = func(ctx context.Context) error { return w.publishSubagent(ctx, sub, call) }
	return sub, nil
}

// publishSubagent stores the state of a subagent and announces its parent's.
func (w *worker) publishSubagent(ctx context.Context, sub *worker, call string) error {
	root, err := sub.d.putMessage(sub.d.state)
	if err != nil {
		return err
	}
	if err := sub.d.store(ctx); err != nil {
		return err
	}
	sub.d.dirty = false
	if w.d.state.SubagentStateRefs == nil {
		w.d.state.SubagentStateRefs = make(map[string][]byte)
	}
	w.d.state.SubagentStateRefs[sub.name] = root
	w.d.noteUse(sub.name, sub.task.GetSubagentType(), w.s.opts.Now())
	w.noteSubagent(call, sub.name, agentv1.SubagentRunStatus_SUBAGENT_RUN_STATUS_RUNNING)
	return w.publish(ctx)
}

// noteUse records in the entry of a subagent when it was made and used, and its type.
// The state itself is kept by reference.
func (d *draft) noteUse(name string, kind *agentv1.SubagentType, now time.Time) {
	entry := d.state.SubagentStates[name]
	if entry == nil {
		entry = &agentv1.SubagentPersistedState{}
		if d.state.SubagentStates == nil {
			d.state.SubagentStates = make(map[string]*agentv1.SubagentPersistedState)
		}
		d.state.SubagentStates[name] = entry
	}
	at := uint64(max(0, now.UnixMilli()))
	if entry.CreatedTimestampMs == 0 {
		entry.CreatedTimestampMs = at
	}
	if kind != nil {
		entry.SubagentType = proto.CloneOf(kind)
	}
	entry.LastUsedTimestampMs = max(entry.LastUsedTimestampMs, at)
	entry.ConversationState = nil
}

func (w *worker) noteSubagent(call, name string, status agentv1.SubagentRunStatus) {
	if w.d.state.SubagentRunsByParentToolCallId == nil {
		w.d.state.SubagentRunsByParentToolCallId = make(map[string]*agentv1.SubagentRunState)
	}
	w.d.state.SubagentRunsByParentToolCallId[call] = &agentv1.SubagentRunState{
		ParentToolCallId: call, SubagentId: proto.String(name), Status: status,
	}
	w.d.dirty = true
}

// endSubagent records the end of a subagent that is not running here.
func (w *worker) endSubagent(name string, status agentv1.SubagentRunStatus) {
	for _, run := range w.d.state.SubagentRunsByParentToolCallId {
		if run.GetSubagentId() == name {
			run.Status = status
			w.d.dirty = true
		}
	}
}
