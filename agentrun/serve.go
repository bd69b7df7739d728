package agentrun

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation/wirelimit"
	"github.com/stet-dev/stet/fault"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/kvstream"
)

// ServeOptions configure the server's side of a run. Agent is required.
type ServeOptions struct {
	// Agent decides what to do.
	Agent Agent
	// Stack, if set, adds layers over the client's blobs, such as a local cache.
	// Flush of the returned store must end with a Flush of peer, because a checkpoint
	// is announced after it.
	Stack func(peer blob.Store) blob.Store
	// KV configures the requests for blobs.
	KV *kvstream.Options
	// Heartbeat is how often the server sends a heartbeat; 5 s by default.
	Heartbeat time.Duration
	// ExecTimeout is how long the client has for a call; a day by default.
	ExecTimeout time.Duration
	// Grace is how long a cancelled turn has for its last checkpoint; 10 s by
	// default.
	Grace time.Duration
	// Now is the clock of the timings of turns; time.Now by default.
	Now func() time.Time
}

func (o *ServeOptions) setDefaults() {
	if o.Stack == nil {
		o.Stack = func(peer blob.Store) blob.Store { return peer }
	}
	if o.Heartbeat <= 0 {
		o.Heartbeat = 5 * time.Second
	}
	if o.ExecTimeout <= 0 {
		o.ExecTimeout = 24 * time.Hour
	}
	if o.Grace <= 0 {
		o.Grace = 10 * time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
}

// Limits on what the server holds for a client.
const (
	maxQueued     = 64 // actions that wait for the turn to end
	maxPrefetched = 10_000
	maxDepth      = 32 // subagents of subagents
	maxEarly      = 16 // frames up to the run request
)

// session is one run on the server.
type session struct {
	opts    ServeOptions
	out     kvstream.Sender[agentv1.AgentServerMessage]
	remote  *kvstream.Store
	blobs   blob.Store
	request *agentv1.AgentRunRequest
	side    sync.WaitGroup // goroutines that use the stream concurrently with the turn

	mu        sync.Mutex // guards what follows
	execs     map[uint32]chan *agentv1.AgentClientMessage
	nextExec  uint32
	queued    []*agentv1.ConversationAction
	stop      context.CancelCauseFunc // ends the current turn
	cancelled *agentv1.CancelAction
	subagents map[string]context.CancelCauseFunc
}

// errCancelled is the cause of a turn that the client cancels.
var errCancelled = fault.New(fault.Canceled, "cancelled by the client")

// Serve answers one run of a client: it reads the request, lets the agent work on the
// client's state and announces checkpoints until nothing is left to do. Everything
// that a checkpoint names is durable at the client before it is announced. The
// context must be that of the stream. When Serve returns, a call of stream.Receive
// may still be running; it ends with the stream.
func Serve(ctx context.Context, stream ServerStream, opts ServeOptions) error {
	if opts.Agent == nil {
		return invalid("serve: there is no agent")
	}
	opts.setDefaults()
	request, err := firstFrame(stream)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s := &session{
		opts: opts, out: kvstream.Locked[agentv1.AgentServerMessage](stream), request: request,
		execs: make(map[uint32]chan *agentv1.AgentClientMessage), subagents: make(map[string]context.CancelCauseFunc),
		queued: []*agentv1.ConversationAction{request.GetAction()},
	}
	s.remote = kvstream.New(kvstream.ServerFrames(s.out), opts.KV)
	s.blobs = opts.Stack(s.remote)
	s.side.Go(func() { s.beat(ctx) })
	go s.read(ctx, stream, cancel)
	err = s.run(ctx)
	if err != nil && ctx.Err() != nil && !errors.Is(context.Cause(ctx), context.Canceled) {
		err = fmt.Errorf("%w: %w", ErrConnectionLost, context.Cause(ctx))
	}
	cancel(nil)
	s.remote.CloseWithError(err)
	<-s.remote.Done()
	s.side.Wait() // after this nothing sends on the stream
	return err
}

// firstFrame returns the run request. Clients may send others before it.
func firstFrame(stream ServerStream) (*agentv1.AgentRunRequest, error) {
	for range maxEarly {
		msg, err := stream.Receive()
		if errors.Is(err, io.EOF) {
			return nil, protocol("the stream ended without a run request")
		}
		if err != nil {
			return nil, fmt.Errorf("receive run request: %w", err)
		}
		switch m := msg.GetMessage().(type) {
		case *agentv1.AgentClientMessage_PrewarmRequest, *agentv1.AgentClientMessage_ClientHeartbeat:
		case *agentv1.AgentClientMessage_RunRequest:
			return m.RunRequest, checkRequest(m.RunRequest)
		default:
			return nil, protocol("the first frame is %T, want a run request", m)
		}
	}
	return nil, protocol("there is no run request among the first %d frames", maxEarly)
}

func checkRequest(r *agentv1.AgentRunRequest) error {
	if r.GetAction().GetAction() == nil {
		return protocol("the run request has no known action")
	}
	if n := len(r.GetPreFetchedBlobs()); n > maxPrefetched {
		return protocol("the run request has %d blobs; the limit is %d", n, maxPrefetched)
	}
	raw, err := encode(r.GetConversationState())
	if err != nil {
		return err
	}
	if err := wirelimit.Check(raw, r.GetConversationState().ProtoReflect().Descriptor(), stateLimits); err != nil {
		return fmt.Errorf("%w: state: %w", ErrProtocol, err)
	}
	return nil
}

// read handles the client's frames until the stream ends.
func (s *session) read(ctx context.Context, stream ServerStream, cancel context.CancelCauseFunc) {
	for {
		msg, err := stream.Receive()
		if err != nil {
			s.remote.CloseWithError(err)
			cancel(fmt.Errorf("receive frame: %w", err))
			return
		}
		switch m := msg.GetMessage().(type) {
		case *agentv1.AgentClientMessage_KvClientMessage:
			s.remote.Deliver(m.KvClientMessage)
		case *agentv1.AgentClientMessage_ExecClientMessage:
			s.deliver(m.ExecClientMessage.GetId(), msg)
		case *agentv1.AgentClientMessage_ExecClientControlMessage:
			if throw := m.ExecClientControlMessage.GetThrow(); throw != nil {
				s.deliver(throw.GetId(), msg)
			}
			if end := m.ExecClientControlMessage.GetStreamClose(); end != nil {
				s.deliver(end.GetId(), msg) // a waiting call gets no other result
			}
		case *agentv1.AgentClientMessage_ConversationAction:
			if err := s.act(ctx, m.ConversationAction); err != nil {
				cancel(err)
				return
			}
		case *agentv1.AgentClientMessage_RunRequest:
			cancel(protocol("a second run request"))
			return
		}
	}
}

// deliver passes a result to the waiting call. Only the first one counts.
func (s *session) deliver(id uint32, msg *agentv1.AgentClientMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if waiting := s.execs[id]; waiting != nil {
		waiting <- msg // has room for one
		delete(s.execs, id)
	}
}

// act handles an action that arrives during a turn.
func (s *session) act(ctx context.Context, action *agentv1.ConversationAction) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch a := action.GetAction().(type) {
	case *agentv1.ConversationAction_CancelAction:
		s.cancelled = a.CancelAction
		s.queued = nil
		if s.stop != nil {
			s.stop(errCancelled)
		}
	case *agentv1.ConversationAction_CancelSubagentAction:
		if stop := s.subagents[a.CancelSubagentAction.GetSubagentId()]; stop != nil {
			stop(errCancelled)
		}
	case *agentv1.ConversationAction_BackgroundShellAction, *agentv1.ConversationAction_BackgroundSubagentAction:
		// The client does that, and the result of the call shows it. The reader must
		// not wait for a client that does not read.
		s.side.Go(func() { _, _ = s.exec(ctx, backgroundRequest(action)) })
	case nil:
	default:
		if len(s.queued) >= maxQueued {
			return protocol("more than %d actions are queued", maxQueued)
		}
		s.queued = append(s.queued, action)
	}
	return nil
}

// next takes the next action, or nil.
func (s *session) next() *agentv1.ConversationAction {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queued) == 0 {
		return nil
	}
	action := s.queued[0]
	s.queued = s.queued[1:]
	s.stop, s.cancelled = nil, nil // of the previous turn
	return action
}

// exec sends a request to the client and returns its result.
func (s *session) exec(ctx context.Context, req *agentv1.ExecServerMessage) (*agentv1.ExecClientMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.ExecTimeout)
	defer cancel()
	result := make(chan *agentv1.AgentClientMessage, 1)
	s.mu.Lock()
	s.nextExec++
	req.Id = s.nextExec
	s.execs[req.Id] = result
	s.mu.Unlock()
	if err := s.send(&agentv1.AgentServerMessage{Message: &agentv1.AgentServerMessage_ExecServerMessage{ExecServerMessage: req}}); err != nil {
		return nil, err
	}
	select {
	case msg := <-result:
		if throw := msg.GetExecClientControlMessage().GetThrow(); throw != nil {
			return nil, &thrownError{text: throw.GetError(), code: throw.GetErrorCode()}
		}
		if msg.GetExecClientMessage() == nil {
			return nil, errNoResult
		}
		return msg.GetExecClientMessage(), nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	delete(s.execs, req.Id)
	s.mu.Unlock()
	abort := &agentv1.ExecServerControlMessage{Message: &agentv1.ExecServerControlMessage_Abort{Abort: &agentv1.ExecServerAbort{Id: req.Id}}}
	err := s.send(&agentv1.AgentServerMessage{Message: &agentv1.AgentServerMessage_ExecServerControlMessage{ExecServerControlMessage: abort}})
	return nil, errors.Join(context.Cause(ctx), err)
}

// thrownError is the failure of a call as reported by the client.
type thrownError struct{ text, code string }

func (e *thrownError) Error() string { return e.text }

// errNoResult is the failure of a call that the client ended without a result.
var errNoResult = &thrownError{text: "the client gave no result"}

func (s *session) send(msg *agentv1.AgentServerMessage) error {
	if err := s.out.Send(msg); err != nil {
		return fmt.Errorf("send frame: %w: %w", ErrConnectionLost, err)
	}
	return nil
}

func (s *session) update(u *agentv1.InteractionUpdate) error {
	return s.send(&agentv1.AgentServerMessage{Message: &agentv1.AgentServerMessage_InteractionUpdate{InteractionUpdate: u}})
}

// maxContent is the largest blob that fits into a message.
func (s *session) maxContent() int {
	const envelope = 1 << 10 // ids and the trace
	limit := kvstream.DefaultMaxMessage
	if s.opts.KV != nil && s.opts.KV.MaxMessage > 0 {
		limit = s.opts.KV.MaxMessage
	}
	return limit - envelope
}

// announce makes a draft durable at the client and sends it as a checkpoint.
func (s *session) announce(ctx context.Context, d *draft) error {
	if d.turn.GetAgentConversationTurn() != nil {
		d.timed(s.opts.Now())
	}
	if err := d.store(ctx); err != nil {
		return err
	}
	if err := s.send(&agentv1.AgentServerMessage{Message: &agentv1.AgentServerMessage_ConversationCheckpointUpdate{
		ConversationCheckpointUpdate: proto.CloneOf(d.state),
	}}); err != nil {
		return err
	}
	d.dirty = false
	return nil
}

func (s *session) beat(ctx context.Context) {
	ticker := time.NewTicker(s.opts.Heartbeat)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if s.update(&agentv1.InteractionUpdate{Message: &agentv1.InteractionUpdate_Heartbeat{Heartbeat: &agentv1.HeartbeatUpdate{}}}) != nil {
			return // the reader gets the cause
		}
	}
}
