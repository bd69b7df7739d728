package agentrun

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"google.golang.org/protobuf/proto"

	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
)

// executions are the calls of a run. They outlive streams: a call that is requested
// again on the next stream is joined, or answered from the ledger.
type executions struct {
	executor Executor
	ledger   *Ledger
	touched  func(paths ...string) // called before and after a call is executed
	fail     func(error)           // called if a call could not be recorded
	ctx      context.Context       // of the run, which the calls belong to

	mu   sync.Mutex            // guards running
	runs map[string]*execution // by key
	work sync.WaitGroup
}

// execution is a running call. Frames up to shown may be sent; the last ones are held
// back until they are recorded, because the server takes them as the end.
type execution struct {
	cancel context.CancelFunc

	mu      sync.Mutex // guards what follows
	frames  []*agentv1.AgentClientMessage
	shown   int
	over    bool
	changed chan struct{} // closed and replaced at every change
}

func newExecution(cancel context.CancelFunc) *execution {
	return &execution{cancel: cancel, changed: make(chan struct{})}
}

// finished returns an execution that only has results.
func finished(frames []*agentv1.AgentClientMessage) *execution {
	x := newExecution(func() {})
	x.frames, x.shown, x.over = frames, len(frames), true
	return x
}

func (x *execution) signalLocked() {
	close(x.changed)
	x.changed = make(chan struct{})
}

func (x *execution) add(f *agentv1.AgentClientMessage) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.shown = len(x.frames)
	x.frames = append(x.frames, f)
	x.signalLocked()
}

// hold adds a frame after the last result, and holds both back.
func (x *execution) hold(f *agentv1.AgentClientMessage) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.frames = append(x.frames, f)
}

func (x *execution) end() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.shown, x.over = len(x.frames), true
	x.signalLocked()
}

func (x *execution) all() []*agentv1.AgentClientMessage {
	x.mu.Lock()
	defer x.mu.Unlock()
	return append([]*agentv1.AgentClientMessage(nil), x.frames...)
}

// follow calls send with every frame, from the first one, until the call is over
// or ctx ends.
func (x *execution) follow(ctx context.Context, send func(*agentv1.AgentClientMessage) error) error {
	for next := 0; ; next++ {
		x.mu.Lock()
		for next >= x.shown && !x.over {
			changed := x.changed
			x.mu.Unlock()
			select {
			case <-changed:
			case <-ctx.Done():
				return ctx.Err()
			}
			x.mu.Lock()
		}
		if next >= x.shown {
			x.mu.Unlock()
			return nil
		}
		f := x.frames[next]
		x.mu.Unlock()
		if err := send(f); err != nil {
			return err
		}
	}
}

// start returns the execution of a request: the running one, the results of a
// finished one, or a new one.
func (e *executions) start(req *agentv1.ExecServerMessage) (*execution, error) {
	key, err := callKey(req)
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if x := e.runs[key]; x != nil {
		return x, nil
	}
	if key != "" && e.ledger != nil {
		x, err := e.recallLocked(key, req)
		if x != nil || err != nil {
			return x, err
		}
	}
	ctx, cancel := context.WithCancel(e.ctx)
	x := newExecution(cancel)
	if key != "" {
		e.runs[key] = x
	}
	e.touched(touchedPaths(req)...)
	e.work.Go(func() {
		defer cancel()
		e.execute(ctx, key, req, x)
	})
	return x, nil
}

// recallLocked returns the results of a call in the ledger. If the call is not in the
// ledger, it records it as begun and returns nil.
func (e *executions) recallLocked(key string, req *agentv1.ExecServerMessage) (*execution, error) {
	// Record an executed call even if the run is cancelled meanwhile.
	ctx := context.WithoutCancel(e.ctx)
	begun, frames, err := e.ledger.look(ctx, key)
	switch {
	case err != nil:
		return nil, err
	case frames != nil:
		return finished(frames), nil
	case !begun:
		return nil, e.ledger.begin(ctx, key)
	}
	if r, ok := e.executor.(Repeater); ok && r.Repeatable(req) {
		return nil, nil
	}
	frames = []*agentv1.AgentClientMessage{thrown(ErrUnknownOutcome)}
	return finished(frames), e.ledger.finish(ctx, key, frames)
}

func (e *executions) execute(ctx context.Context, key string, req *agentv1.ExecServerMessage, x *execution) {
	err := e.executor.Execute(ctx, proto.CloneOf(req), func(result *agentv1.ExecClientMessage) {
		result = proto.CloneOf(result)
		result.ExecId = req.GetExecId()
		x.add(&agentv1.AgentClientMessage{Message: &agentv1.AgentClientMessage_ExecClientMessage{ExecClientMessage: result}})
	})
	e.touched(touchedPaths(req)...) // again: a capture may have run in between
	if err != nil {
		x.hold(thrown(err))
	}
	x.hold(control(&agentv1.ExecClientControlMessage{Message: &agentv1.ExecClientControlMessage_StreamClose{StreamClose: &agentv1.ExecClientStreamClose{}}}))
	if key != "" && e.ledger != nil {
		if err := e.ledger.finish(context.WithoutCancel(ctx), key, x.all()); err != nil {
			e.fail(err)
			return // the last result is never sent, so nothing relies on it
		}
	}
	x.end()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ledger != nil {
		delete(e.runs, key) // the ledger has it
	}
}

// close ends the calls that are no longer needed.
func (e *executions) close() {
	e.mu.Lock()
	for _, x := range e.runs {
		x.cancel()
	}
	e.mu.Unlock()
	e.work.Wait()
}

func control(msg *agentv1.ExecClientControlMessage) *agentv1.AgentClientMessage {
	return &agentv1.AgentClientMessage{Message: &agentv1.AgentClientMessage_ExecClientControlMessage{ExecClientControlMessage: msg}}
}

// thrown returns the message for a failure that no result expresses.
func thrown(err error) *agentv1.AgentClientMessage {
	throw := &agentv1.ExecClientThrow{Error: err.Error()}
	switch {
	case errors.Is(err, ErrUnknownOutcome):
		throw.ErrorCode = proto.String("unknown_outcome")
	case errors.Is(err, ErrUnsupported):
		throw.ErrorCode = proto.String("unsupported")
	case errors.Is(err, context.Canceled):
		throw.ErrorCode = proto.String("cancelled")
	}
	return control(&agentv1.ExecClientControlMessage{Message: &agentv1.ExecClientControlMessage_Throw{Throw: throw}})
}

// addressed returns a frame with the number of the call on a stream.
func addressed(f *agentv1.AgentClientMessage, id uint32) *agentv1.AgentClientMessage {
	f = proto.CloneOf(f)
	switch m := f.GetMessage().(type) {
	case *agentv1.AgentClientMessage_ExecClientMessage:
		m.ExecClientMessage.Id = id
	case *agentv1.AgentClientMessage_ExecClientControlMessage:
		switch c := m.ExecClientControlMessage.GetMessage().(type) {
		case *agentv1.ExecClientControlMessage_StreamClose:
			c.StreamClose.Id = id
		case *agentv1.ExecClientControlMessage_Throw:
			c.Throw.Id = id
		}
	}
	return f
}

// noExecutor answers every request for a client that executes nothing.
type noExecutor struct{}

func (noExecutor) Execute(_ context.Context, req *agentv1.ExecServerMessage, _ func(*agentv1.ExecClientMessage)) error {
	_, field := arm(req)
	if field == nil {
		return fmt.Errorf("execute: %w", ErrUnsupported)
	}
	return fmt.Errorf("execute %s: %w", field.Name(), ErrUnsupported)
}
