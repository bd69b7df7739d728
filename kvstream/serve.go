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

// ServeOptions configure the answering side; nil and the zero value work.
type ServeOptions struct {
	// MaxConcurrent is how many requests are processed at once. Further ones stay in
	// the stream. The default is 16.
	MaxConcurrent int
	// MaxMessage limits an encoded request and an encoded answer. The default is
	// DefaultMaxMessage.
	MaxMessage int
	// Timeout limits the local store's time for a request. The default is 30 s.
	Timeout time.Duration
	// Opaque means that the server stores sealed content here, which is not named by its
	// SHA-256, so contents are not verified.
	Opaque bool
	// OnError, if set, is called for every failed request. The peer only learns the kind
	// of error. It may be called from several goroutines and must not wait for the
	// stream.
	OnError func(Failure)
	// MeterProvider and TracerProvider receive measurements and spans; nil means
	// OpenTelemetry's global ones.
	MeterProvider  metric.MeterProvider
	TracerProvider trace.TracerProvider
}

// Failure describes a failed request.
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

// Serve answers the requests of in from local until in ends, and returns once every
// answer has been sent: nil at the normal end of the stream, or its error. The
// context must be that of the stream.
func Serve(ctx context.Context, in Receiver[agentv1.KvServerMessage], out Sender[agentv1.KvClientMessage], local blob.Store, opts *ServeOptions) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := NewResponder(out, local, opts)
	err := receive(ctx, in, r)
	if err != nil {
		cancel() // running requests are no longer needed
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

// Responder is Serve for a stream that the caller reads.
type Responder struct {
	local   blob.Store
	opts    ServeOptions
	metrics *instruments
	tracer  trace.Tracer
	slots   chan struct{} // holds one item for each running request

	sending chan struct{} // holds an item while out is used
	out     Sender[agentv1.KvClientMessage]

	mu     sync.Mutex // guards what follows
	work   sync.WaitGroup
	closed bool
	err    error                     // of the first failed send
	last   map[blob.ID]chan struct{} // the latest request for a blob; closed when it is done
	stats  ServeStats
}

// ServeStats count requests.
type ServeStats struct {
	Gets, Sets uint64 // received
	Absent     uint64 // gets of blobs that the local store does not have
	Failed     uint64 // requests reported to OnError
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

// Handle answers a request in the background. It blocks while too many are running,
// which slows down a flooding peer. The context must be that of the stream: after it
// ends, nothing is answered. An error means that the stream is unusable.
//
// Requests for different blobs run concurrently; requests for one blob run in the
// order of the Handle calls, so that a get sees an earlier set.
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

// task is a request in progress.
type task struct {
	msg    *agentv1.KvServerMessage
	op     string
	id     blob.ID
	idErr  error
	before chan struct{} // closed when the request before it, for the same blob, is done
	done   chan struct{}
}

// admit registers a request in order.
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

// leave lets the next request for the same blob proceed.
func (r *Responder) leave(t *task) {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(t.done)
	if r.last[t.id] == t.done {
		delete(r.last, t.id)
	}
}

// Close returns once no request is running, with the error of the first failed send.
// Later requests are refused.
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
