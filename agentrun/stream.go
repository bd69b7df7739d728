package agentrun

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/kvstream"
)

// errSilent is the cause when a stream is closed because nothing arrived.
var errSilent = fmt.Errorf("%w: no message from the server for too long", ErrConnectionLost)

// link is one stream of a run.
type link struct {
	r          *runner
	stream     Stream
	out        kvstream.Sender[agentv1.AgentClientMessage]
	controller *Controller
	responder  *kvstream.Responder
	cancel     context.CancelCauseFunc // ends the stream
	watch      *time.Timer             // closes a silent stream
	work       sync.WaitGroup

	asked atomic.Int64 // unanswered requests of the server

	mu    sync.Mutex            // guards calls
	calls map[uint32]*execution // by their number on this stream
}

// maxAsked is how many open calls and queries a server may have.
const maxAsked = 256

// stream runs an action on a new stream and returns nil once the server has ended it
// normally and everything it announced is saved.
func (r *runner) stream(ctx context.Context, action *agentv1.ConversationAction) error {
	// Not the caller's context: after it ends, the server must still be told, and its
	// last checkpoint must still be saved.
	work, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	r.result.Streams++
	stream, err := r.transport.Open(work)
	if err != nil {
		return fmt.Errorf("open stream: %w", err)
	}
	l := &link{
		r: r, stream: stream, out: kvstream.Locked[agentv1.AgentClientMessage](stream),
		controller: NewController(r.req.Handler), cancel: cancel, calls: make(map[uint32]*execution),
	}
	l.responder = kvstream.NewResponder(kvstream.ClientFrames(l.out), r.req.Handler.blobs, r.req.KV)
	if r.req.Silence > 0 {
		l.watch = time.AfterFunc(r.req.Silence, func() { cancel(errSilent) })
		defer l.watch.Stop()
	}
	return l.run(ctx, work, r.req.runRequest(r.req.Handler.Latest(), action))
}

// run drives the stream until its end. caller is the context that cancels the run,
// work the context of the stream.
func (l *link) run(caller, work context.Context, first *agentv1.AgentClientMessage) error {
	saved := make(chan error, 1)
	go func() {
		err := l.controller.Run(work)
		if err != nil {
			l.cancel(err) // later checkpoints could not be saved
		}
		saved <- err
	}()
	ended := make(chan struct{})
	l.work.Go(func() { l.beat(ended) })
	l.work.Go(func() { l.cancelled(caller, ended) })
	err := l.out.Send(first)
	if err == nil || errors.Is(err, ErrConnectionLost) || errors.Is(err, io.EOF) {
		// A server that refuses sends the reason.
		err = l.read(work)
	}
	if l.watch != nil {
		l.watch.Stop() // saving the rest may take any time
	}
	close(ended)
	l.controller.Close()
	notSaved := <-saved
	l.cancel(nil)
	_ = l.responder.Close() // unsent answers; the reader has the cause
	l.work.Wait()
	if notSaved != nil && !errors.Is(notSaved, context.Canceled) {
		return notSaved
	}
	if err == nil && notSaved == nil {
		// The server ended the run, so unfinished requests do not matter.
		return nil
	}
	if cause := context.Cause(work); errors.Is(cause, errSilent) {
		return cause
	}
	if err == nil {
		return notSaved
	}
	return err
}

// read handles frames until the stream ends; nil means a normal end.
func (l *link) read(ctx context.Context) error {
	for {
		msg, err := l.stream.Receive()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if l.watch != nil {
			l.watch.Stop() // while this side is slow
		}
		l.take(ctx, msg)
		if l.watch != nil {
			l.watch.Reset(l.r.req.Silence)
		}
	}
}

// take handles one frame. An error ends the stream, which read notices.
func (l *link) take(ctx context.Context, msg *agentv1.AgentServerMessage) {
	switch m := msg.GetMessage().(type) {
	case *agentv1.AgentServerMessage_InteractionUpdate:
		if m.InteractionUpdate.GetHeartbeat() == nil {
			l.r.req.OnUpdate(m.InteractionUpdate)
		}
	case *agentv1.AgentServerMessage_ConversationCheckpointUpdate:
		l.controller.Checkpoint(m.ConversationCheckpointUpdate)
	case *agentv1.AgentServerMessage_KvServerMessage:
		// An error means that answers cannot be sent; the next Receive returns the
		// reason.
		_ = l.responder.Handle(ctx, m.KvServerMessage)
	case *agentv1.AgentServerMessage_ExecServerMessage:
		// Execute a call only after the state that requests it is saved.
		if l.admit() {
			l.controller.After(func() {
				l.work.Go(func() { l.execute(ctx, m.ExecServerMessage) })
			})
		}
	case *agentv1.AgentServerMessage_ExecServerControlMessage:
		if abort := m.ExecServerControlMessage.GetAbort(); abort != nil {
			l.controller.After(func() { l.abort(abort.GetId()) })
		}
	case *agentv1.AgentServerMessage_InteractionQuery:
		if l.admit() {
			l.work.Go(func() { l.query(ctx, m.InteractionQuery) })
		}
	}
}

// admit reports whether another request may be handled. It keeps a server from
// filling the client's memory.
func (l *link) admit() bool {
	if l.asked.Add(1) <= maxAsked {
		return true
	}
	l.r.fail(protocol("the server has more than %d open requests", maxAsked))
	return false
}

// execute answers one request of the server.
func (l *link) execute(ctx context.Context, req *agentv1.ExecServerMessage) {
	defer l.asked.Add(-1)
	x, err := l.r.execs.start(req)
	if err != nil {
		l.r.fail(fmt.Errorf("execute: %w", err))
		return
	}
	l.mu.Lock()
	l.calls[req.GetId()] = x
	l.mu.Unlock()
	// Unsent results are sent on the next stream, if requested.
	_ = x.follow(ctx, func(f *agentv1.AgentClientMessage) error { return l.out.Send(addressed(f, req.GetId())) })
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.calls, req.GetId())
}

func (l *link) abort(id uint32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if x := l.calls[id]; x != nil {
		x.cancel()
	}
}

func (l *link) query(ctx context.Context, q *agentv1.InteractionQuery) {
	defer l.asked.Add(-1)
	response := &agentv1.InteractionResponse{}
	if l.r.req.OnQuery != nil {
		if got, err := l.r.req.OnQuery(ctx, q); err == nil && got != nil {
			response = got
		}
	}
	response.Id = q.GetId()
	_ = l.out.Send(&agentv1.AgentClientMessage{Message: &agentv1.AgentClientMessage_InteractionResponse{InteractionResponse: response}})
}

// beat sends heartbeats, and the actions of the caller.
func (l *link) beat(ended <-chan struct{}) {
	ticker := time.NewTicker(l.r.req.Heartbeat)
	defer ticker.Stop()
	actions := l.r.req.Actions
	for {
		msg := &agentv1.AgentClientMessage{Message: &agentv1.AgentClientMessage_ClientHeartbeat{ClientHeartbeat: &agentv1.ClientHeartbeat{}}}
		select {
		case <-ended:
			return
		case action, ok := <-actions:
			if !ok {
				actions = nil
				continue
			}
			msg.Message = &agentv1.AgentClientMessage_ConversationAction{ConversationAction: l.r.requeue(action)}
		case <-ticker.C:
		}
		if err := l.out.Send(msg); err != nil {
			return // the reader gets the cause
		}
	}
}

// cancelled notifies the server when the caller cancels, and gives it some time.
func (l *link) cancelled(caller context.Context, ended <-chan struct{}) {
	select {
	case <-ended:
		return
	case <-caller.Done():
	}
	var failed *failure
	if errors.As(context.Cause(caller), &failed) {
		l.cancel(failed) // the turn is not cancelled: it may be resumed
		return
	}
	// Before sending, which may block on the server.
	grace := time.AfterFunc(l.r.req.Grace, func() { l.cancel(caller.Err()) })
	defer grace.Stop()
	// If sending fails, the stream may have ended normally; its frames are still
	// being read and saved.
	_ = l.out.Send(&agentv1.AgentClientMessage{Message: &agentv1.AgentClientMessage_ConversationAction{
		ConversationAction: cancelAction("cancelled by the client"),
	}})
	<-ended
}
