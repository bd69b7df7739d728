package kvstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/stet-dev/stet/blob"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
)

// ServeOptions shape the answering side; nil and the zero value work.
type ServeOptions struct {
	// MaxConcurrent is how many requests are worked on at once. Further ones stay
	// in the stream. The default is 16.
	MaxConcurrent int
	// MaxMessage bounds an encoded request and an encoded answer. The default is
	// DefaultMaxMessage.
	MaxMessage int
	// Timeout is what the local store has for a request. The default is 30 s.
	Timeout time.Duration
	// Opaque says that the server keeps sealed content here, which is not named by
	// its SHA-256: contents are then not verified.
	Opaque bool
	// OnError, if set, is told of every request that failed. It is the only one to
	// learn of a failed get, whose answer has no room for an error. It may be
	// called from several goroutines and must not wait for the stream.
	OnError func(Failure)
	// MeterProvider and TracerProvider take measurements and spans; nil means
	// OpenTelemetry's global ones.
	MeterProvider  metric.MeterProvider
	TracerProvider trace.TracerProvider
}

// Failure tells of a request that could not be fulfilled.
type Failure struct {
	Request uint32  // its number in the stream
	Op      string  // OpGet, OpSet or OpUnknown
	Blob    blob.ID // zero if the request named none
	Err     error
}

func (o *ServeOptions) withDefaults() ServeOptions {
	var opts ServeOptions
	if o != nil {
		opts = *o
	}
	if opts.MaxConcurrent <= 0 {
		opts.MaxConcurrent = 16
	}
	if opts.MaxMessage <= 0 {
		opts.MaxMessage = DefaultMaxMessage
	}
	if opts.Timeout <= 0 {
		opts.Timeout = 30 * time.Second
	}
	if opts.OnError == nil {
		opts.OnError = func(Failure) {}
	}
	return opts
}

// Serve answers the requests of in from local until in ends, and returns when
// every answer has been handed to out: nil at the regular end of the stream, or
// what broke it. The context must be that of the stream.
func Serve(ctx context.Context, in Receiver[agentv1.KvServerMessage], out Sender[agentv1.KvClientMessage], local blob.Store, opts *ServeOptions) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := NewResponder(out, local, opts)
	err := receive(ctx, in, r)
	if err != nil {
		cancel() // nobody waits for what is still being worked on
	}
	return errors.Join(err, r.Close())
}

func receive(ctx context.Context, in Receiver[agentv1.KvServerMessage], r *Responder) error {
	for {
		msg, err := in.Receive()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return fmt.Errorf("receive key-value request: %w", err)
		}
		if err := r.Handle(ctx, msg); err != nil {
			return err
		}
	}
}

// Responder is Serve for a stream that somebody else reads.
type Responder struct {
	local   blob.Store
	opts    ServeOptions
	metrics *instruments
	tracer  trace.Tracer
	slots   chan struct{} // holds one item for each request at work

	sending chan struct{} // holds an item while out is used
	out     Sender[agentv1.KvClientMessage]

	mu     sync.Mutex // guards what follows
	work   sync.WaitGroup
	closed bool
	err    error                     // of the first answer that could not be sent
	last   map[blob.ID]chan struct{} // of the latest request for a blob, closed when it is done
	stats  ServeStats
}

// ServeStats count requests.
type ServeStats struct {
	Gets, Sets uint64 // received
	Absent     uint64 // gets of blobs that the local store does not have
	Failed     uint64 // requests that OnError was told of
}

// NewResponder returns a responder that answers from local to out. Close it.
func NewResponder(out Sender[agentv1.KvClientMessage], local blob.Store, opts *ServeOptions) *Responder {
	o := opts.withDefaults()
	return &Responder{
		local:   local,
		opts:    o,
		metrics: newInstruments(o.MeterProvider, "controlled", OpGet, OpSet),
		tracer:  tracerOf(o.TracerProvider),
		slots:   make(chan struct{}, o.MaxConcurrent),
		sending: make(chan struct{}, 1),
		out:     out,
		last:    make(map[blob.ID]chan struct{}),
	}
}

// Handle takes a request and answers it in the background. It waits while too
// many are at work already, so that a peer that floods is slowed down. The
// context belongs to the stream: when it ends, there is nobody to answer. An
// error means that the stream is of no more use.
//
// Requests for different blobs are worked on at once; those for one blob in the
// order of the Handle calls, so that a get sees the set before it.
func (r *Responder) Handle(ctx context.Context, msg *agentv1.KvServerMessage) error {
	select {
	case r.slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	t, err := r.admit(msg)
	if err != nil {
		<-r.slots
		return err
	}
	go func() {
		defer r.work.Done()
		defer func() { <-r.slots }()
		r.respond(ctx, t)
	}()
	return nil
}

// task is a request on its way.
type task struct {
	msg    *agentv1.KvServerMessage
	op     string
	id     blob.ID
	idErr  error
	before chan struct{} // closed when the request before it, for the same blob, is done
	done   chan struct{}
}

// admit registers a request while its order is known.
func (r *Responder) admit(msg *agentv1.KvServerMessage) (*task, error) {
	t := &task{msg: msg, op: OpUnknown, done: make(chan struct{})}
	switch args := msg.GetMessage().(type) {
	case *agentv1.KvServerMessage_GetBlobArgs:
		t.op = OpGet
		t.id, t.idErr = blob.IDFromBytes(args.GetBlobArgs.GetBlobId())
	case *agentv1.KvServerMessage_SetBlobArgs:
		t.op = OpSet
		t.id, t.idErr = blob.IDFromBytes(args.SetBlobArgs.GetBlobId())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.err != nil:
		return nil, r.err
	case r.closed:
		return nil, fmt.Errorf("handle key-value request: %w", blob.ErrClosed)
	}
	r.work.Add(1)
	t.before = r.last[t.id]
	r.last[t.id] = t.done
	switch t.op {
	case OpGet:
		r.stats.Gets++
	case OpSet:
		r.stats.Sets++
	}
	return t, nil
}

// leave lets the next request for the same blob go on.
func (r *Responder) leave(t *task) {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(t.done)
	if r.last[t.id] == t.done {
		delete(r.last, t.id)
	}
}

// Close returns when no request is at work any more, with the error of the first
// answer that could not be sent. Later requests are refused.
func (r *Responder) Close() error {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.work.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// Stats returns the present counts.
func (r *Responder) Stats() ServeStats {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stats
}
