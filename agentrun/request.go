package agentrun

import (
	"context"
	"math/rand/v2"
	"time"

	"google.golang.org/protobuf/proto"

	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/kvstream"
)

// Request describes a run. Handler is required, and either Action or a Queue with a
// message; everything else has a default.
type Request struct {
	// Handler saves the checkpoints and has the latest one.
	Handler *Handler
	// Action starts the run. If it is nil, the first message of the queue does.
	Action *agentv1.ConversationAction
	// Queue holds messages that are sent one by one, in order, each when the turn
	// before it has ended. More may be added meanwhile.
	Queue *Queue
	// Template is copied into every run request: model, tools and the like. The
	// state, the action and the conversation's id are filled in.
	Template *agentv1.AgentRunRequest
	// Executor performs the server's requests. Without one every request fails.
	Executor Executor
	// Ledger remembers executed calls beyond the life of this process. Without it
	// they are remembered while Run runs.
	Ledger *Ledger
	// OnUpdate, if set, receives every update of the interaction except heartbeats,
	// in order.
	OnUpdate func(*agentv1.InteractionUpdate)
	// OnQuery, if set, answers the server's questions to the user. It may be called
	// for several queries at once. Without it, and after an error, the answer is
	// empty.
	OnQuery func(ctx context.Context, q *agentv1.InteractionQuery) (*agentv1.InteractionResponse, error)
	// OnResume, if set, is called when the connection was lost and the run is about
	// to resume from the latest checkpoint; updates since then come again.
	OnResume func(attempt int, cause error)
	// Actions, if set, are sent during a turn, for example to cancel a subagent. An
	// action in transit is lost with the connection, but the message of a
	// UserMessageAction stays in the queue.
	Actions <-chan *agentv1.ConversationAction

	// Heartbeat is how often the client sends a heartbeat; 5 s by default.
	Heartbeat time.Duration
	// Silence is how long the server may send nothing before the connection counts
	// as lost; two minutes by default, never if it is negative.
	Silence time.Duration
	// Attempts is how often a run is tried again without any progress; 8 by
	// default, never if it is negative.
	Attempts int
	// Backoff is the first pause before another try, which doubles up to MaxBackoff;
	// 200 ms and 15 s by default. Part of it is random.
	Backoff, MaxBackoff time.Duration
	// Grace is how long the server has to end a run that was cancelled; 5 s by
	// default.
	Grace time.Duration
	// KV configures the serving of blobs.
	KV *kvstream.ServeOptions
}

// Result describes a finished run.
type Result struct {
	// Turns is how many turns ended normally.
	Turns int
	// Streams is how many streams were opened, Resumed how many of them after a lost
	// connection.
	Streams, Resumed int
	// Checkpoints is how many states were saved.
	Checkpoints int
	// Transcript is why a transcript could not be written, or nil. The states are saved
	// anyway.
	Transcript error
}

func (r *Request) setDefaults() {
	if r.Executor == nil {
		r.Executor = noExecutor{}
	}
	for _, d := range []struct {
		value *time.Duration
		def   time.Duration
	}{
		{&r.Heartbeat, 5 * time.Second}, {&r.Silence, 2 * time.Minute}, {&r.Backoff, 200 * time.Millisecond},
		{&r.MaxBackoff, 15 * time.Second}, {&r.Grace, 5 * time.Second},
	} {
		if *d.value == 0 {
			*d.value = d.def
		}
	}
	if r.Attempts == 0 {
		r.Attempts = 8
	}
	if r.OnUpdate == nil {
		r.OnUpdate = func(*agentv1.InteractionUpdate) {}
	}
	if r.OnResume == nil {
		r.OnResume = func(int, error) {}
	}
}

// pause returns how long to wait before the n-th try, counted from 1.
func (r *Request) pause(n int) time.Duration {
	d := r.Backoff
	for ; n > 1 && d < r.MaxBackoff; n-- {
		d *= 2
	}
	d = min(d, r.MaxBackoff)
	// Spread out clients that lost a server at the same time.
	return d/2 + rand.N(d/2+1)
}

// runRequest returns the first frame of a stream.
func (r *Request) runRequest(state *agentv1.ConversationStateStructure, action *agentv1.ConversationAction) *agentv1.AgentClientMessage {
	req := &agentv1.AgentRunRequest{}
	if r.Template != nil {
		req = proto.CloneOf(r.Template)
	}
	if state == nil {
		state = &agentv1.ConversationStateStructure{}
	}
	req.ConversationState, req.Action = state, action
	req.ConversationId = proto.String(r.Handler.Conversation())
	return &agentv1.AgentClientMessage{Message: &agentv1.AgentClientMessage_RunRequest{RunRequest: req}}
}

// checkSize rejects an action that does not fit into a message, before any work is
// done for it.
func (r *Request) checkSize(action *agentv1.ConversationAction) error {
	const room = 64 << 10 // the other parts of the request
	if size, limit := proto.Size(action), kvstream.DefaultMaxMessage-room; size > limit {
		return invalid("run: the action has %d bytes; the limit is %d", size, limit)
	}
	return nil
}

// Say returns the action for a new message of the user.
func Say(text string) *agentv1.ConversationAction {
	return messageAction(&agentv1.UserMessage{Text: text, MessageId: newMessageID()})
}

func messageAction(msg *agentv1.UserMessage) *agentv1.ConversationAction {
	return &agentv1.ConversationAction{Action: &agentv1.ConversationAction_UserMessageAction{
		UserMessageAction: &agentv1.UserMessageAction{UserMessage: msg},
	}}
}

// Resume returns the action that continues from the latest checkpoint.
func Resume() *agentv1.ConversationAction {
	return &agentv1.ConversationAction{Action: &agentv1.ConversationAction_ResumeAction{ResumeAction: &agentv1.ResumeAction{}}}
}

func cancelAction(reason string) *agentv1.ConversationAction {
	return &agentv1.ConversationAction{Action: &agentv1.ConversationAction_CancelAction{CancelAction: &agentv1.CancelAction{Reason: reason}}}
}

// withMessageID returns the action and the id of its message. A message without an id
// gets one, so that it can be found in the states.
func withMessageID(action *agentv1.ConversationAction) (*agentv1.ConversationAction, string) {
	action = proto.CloneOf(action)
	var msg *agentv1.UserMessage
	switch a := action.GetAction().(type) {
	case *agentv1.ConversationAction_UserMessageAction:
		msg = a.UserMessageAction.GetUserMessage()
	case *agentv1.ConversationAction_StartPlanAction:
		msg = a.StartPlanAction.GetUserMessage()
	case *agentv1.ConversationAction_ExecutePlanAction:
		if a.ExecutePlanAction.GetKickoffMessageId() == "" {
			a.ExecutePlanAction.KickoffMessageId = proto.String(newMessageID())
		}
		return action, a.ExecutePlanAction.GetKickoffMessageId()
	}
	if msg == nil {
		return action, ""
	}
	if msg.MessageId == "" {
		msg.MessageId = newMessageID()
	}
	return action, msg.MessageId
}
