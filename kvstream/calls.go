package kvstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"go.opentelemetry.io/otel/trace"
	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
)

// call is a request and, once done is closed, its outcome.
type call struct {
	op       string
	blob     blob.ID
	id       uint32
	weight   int64                    // of its content, in Store.bytes
	msg      *agentv1.KvServerMessage // nil after the writer took it
	begin    time.Time
	deadline time.Time
	span     trace.Span
	done     chan struct{}
	data     []byte
	err      error
}

// Stats count the requests of a Store and their answers.
type Stats struct {
	Requests uint64 // made, whether or not they were sent
	Waiting  int    // waiting for an answer
	// Unknown answers were to requests never sent, Repeated ones to requests already
	// answered or abandoned. Both were dropped.
	Unknown, Repeated uint64
	// Unexpected answers did not match the kind of their request.
	Unexpected uint64
}

// Stats returns the present counts.
func (s *Store) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := s.stats
	stats.Requests, stats.Waiting = s.asked, len(s.waiting)
	return stats
}

// request builds the message for a call, without its content, and returns its final
// size.
func request(ctx context.Context, op string, id blob.ID, data []byte) (*agentv1.KvServerMessage, int) {
	msg := &agentv1.KvServerMessage{Id: math.MaxUint32, SpanContext: spanContext(ctx)}
	if op == OpGet {
		msg.Message = &agentv1.KvServerMessage_GetBlobArgs{GetBlobArgs: &agentv1.GetBlobArgs{BlobId: id.Bytes()}}
		return msg, proto.Size(msg)
	}
	args := &agentv1.SetBlobArgs{BlobId: id.Bytes(), BlobData: data}
	msg.Message = &agentv1.KvServerMessage_SetBlobArgs{SetBlobArgs: args}
	size := proto.Size(msg)
	args.BlobData = nil
	return msg, size
}

// start queues a request once there is room. The caller must await or abandon the
// call.
func (s *Store) start(ctx context.Context, op string, id blob.ID, data []byte) (*call, error) {
	c := &call{op: op, blob: id, begin: time.Now(), done: make(chan struct{}), weight: min(int64(len(data)), s.opts.MaxBytes)}
	c.deadline = c.begin.Add(s.opts.Timeout) // covers the wait for room and for the answer
	ctx, c.span = s.tracer.Start(ctx, "agent_kv.remote."+op, trace.WithSpanKind(trace.SpanKindClient))
	var size int
	c.msg, size = request(ctx, op, id, data)
	err := s.admit(ctx, c, size)
	if err != nil {
		s.metrics.record(ctx, op, c.begin, err)
		endSpan(c.span, err)
		return nil, err
	}
	if set := c.msg.GetSetBlobArgs(); set != nil {
		// A caller that gives up may reuse its slice while the stream still reads it.
		set.BlobData = bytes.Clone(data)
	}
	if err := s.enqueue(c); err != nil {
		s.metrics.record(ctx, op, c.begin, err)
		endSpan(c.span, err)
		return nil, err
	}
	return c, nil
}

// admit waits until a request of this size fits into the window.
func (s *Store) admit(ctx context.Context, c *call, size int) error {
	if size > s.opts.MaxMessage {
		return tooLarge("message", size, s.opts.MaxMessage)
	}
	waiting, cancel := context.WithDeadline(ctx, c.deadline)
	defer cancel()
	err := s.requests.Acquire(waiting, 1)
	if err == nil {
		if err = s.bytes.Acquire(waiting, c.weight); err != nil {
			s.requests.Release(1)
		}
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return fmt.Errorf("wait for earlier requests: %w", ErrNoAnswer)
}

// enqueue assigns an id to a call and passes it to the writer.
func (s *Store) enqueue(c *call) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		s.releaseLocked(c)
		return s.err
	}
	for s.waiting[uint32(s.asked)] != nil { // after 2^32 requests one may still be waiting
		s.asked++
	}
	c.id = uint32(s.asked)
	c.msg.Id = c.id
	s.asked++
	s.waiting[c.id] = c
	s.queue = append(s.queue, c)
	select {
	case s.wake <- struct{}{}:
	default:
	}
	return nil
}

func (s *Store) releaseLocked(c *call) {
	s.bytes.Release(c.weight)
	s.requests.Release(1)
}

// finishLocked ends a waiting call.
func (s *Store) finishLocked(c *call, data []byte, err error) {
	delete(s.waiting, c.id)
	if c.msg != nil {
		s.queue = slices.DeleteFunc(s.queue, func(q *call) bool { return q == c })
		c.msg = nil
	}
	c.data, c.err = data, err
	close(c.done)
	s.releaseLocked(c)
}

// await returns the outcome of a call. It must be called once.
func (s *Store) await(ctx context.Context, c *call) ([]byte, error) {
	timer := time.NewTimer(time.Until(c.deadline))
	defer timer.Stop()
	select {
	case <-c.done:
	case <-ctx.Done():
		s.abandon(c, ctx.Err())
	case <-timer.C:
		s.abandon(c, ErrNoAnswer)
	}
	s.metrics.record(ctx, c.op, c.begin, c.err)
	endSpan(c.span, c.err)
	return c.data, c.err
}

// abandon ends a call with err, unless it was already answered.
func (s *Store) abandon(c *call, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting[c.id] == c {
		s.finishLocked(c, nil, err)
	}
}

// giveUp abandons calls that no longer matter because of err.
func (s *Store) giveUp(calls []*call, err error) {
	for _, c := range calls {
		s.abandon(c, err)
		endSpan(c.span, c.err)
	}
}

// sets returns the pending sets.
func (s *Store) sets() []*call {
	s.mu.Lock()
	defer s.mu.Unlock()
	var sets []*call
	for _, c := range s.waiting {
		if c.op == OpSet {
			sets = append(sets, c)
		}
	}
	return sets
}

// write sends queued requests until the store is closed.
func (s *Store) write() {
	defer close(s.done)
	for msg := s.next(); msg != nil; msg = s.next() {
		if err := s.out.Send(msg); err != nil {
			s.CloseWithError(fmt.Errorf("send key-value request: %w", err))
			return
		}
	}
}

// next takes the oldest request from the queue, or nil from a closed store.
func (s *Store) next() *agentv1.KvServerMessage {
	for {
		if msg := s.take(); msg != nil {
			return msg
		}
		select {
		case <-s.wake:
		case <-s.closed:
			return nil
		}
	}
}

func (s *Store) take() *agentv1.KvServerMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 {
		return nil
	}
	c := s.queue[0]
	s.queue = slices.Delete(s.queue, 0, 1)
	msg := c.msg
	c.msg = nil
	return msg
}

// Run delivers the answers of in until it ends, then closes the store and returns
// once the sender is no longer in use: nil at the normal end of the stream, or its
// error.
func (s *Store) Run(in Receiver[agentv1.KvClientMessage]) error {
	for {
		msg, err := in.Receive()
		if err == nil {
			s.Deliver(msg)
			continue
		}
		s.CloseWithError(err)
		<-s.done
		if errors.Is(err, io.EOF) {
			return nil
		}
		return fmt.Errorf("receive key-value answer: %w", err)
	}
}

// Deliver passes an answer to the waiting call and never blocks. It takes ownership
// of the message. Answers without a waiting call are counted and dropped.
func (s *Store) Deliver(msg *agentv1.KvClientMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := msg.GetId()
	c := s.waiting[id]
	switch {
	case c != nil && c.msg == nil:
		data, err := s.outcome(c, msg)
		if errors.Is(err, ErrUnexpectedAnswer) {
			s.stats.Unexpected++
		}
		s.finishLocked(c, data, err)
	case c == nil && uint64(id) < s.asked:
		s.stats.Repeated++
		s.metrics.drop("repeated")
	default: // never requested, or not sent yet: the peer is guessing
		s.stats.Unknown++
		s.metrics.drop("unknown")
	}
}

// outcome reads an answer.
func (s *Store) outcome(c *call, msg *agentv1.KvClientMessage) ([]byte, error) {
	if size := proto.Size(msg); size > s.opts.MaxMessage {
		return nil, tooLarge("answer", size, s.opts.MaxMessage)
	}
	switch result := msg.GetMessage().(type) {
	case *agentv1.KvClientMessage_GetBlobResult:
		if c.op != OpGet {
			break
		}
		if result.GetBlobResult == nil || result.GetBlobResult.BlobData == nil {
			return nil, blob.NotFound(c.blob)
		}
		return result.GetBlobResult.BlobData, nil
	case *agentv1.KvClientMessage_SetBlobResult:
		if failure := result.SetBlobResult.GetError(); failure != nil { // of a get too
			return nil, newPeerError(failure.GetMessage())
		}
		if c.op != OpSet {
			break
		}
		return nil, nil
	}
	return nil, fmt.Errorf("%w: %s got %T", ErrUnexpectedAnswer, c.op, msg.GetMessage())
}

// Close ends the store: waiting and later calls fail with blob.ErrClosed. It does not
// wait; see Done.
func (s *Store) Close() error {
	s.CloseWithError(nil)
	return nil
}

// CloseWithError is Close with a cause, which calls return with blob.ErrClosed. Only
// the first one counts.
func (s *Store) CloseWithError(cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return
	}
	s.err = blob.ErrClosed
	if cause != nil {
		// Only the text: an io.EOF or the end of the stream's context would look like
		// the caller's own.
		s.err = fmt.Errorf("%w: %v", blob.ErrClosed, cause)
	}
	close(s.closed)
	for _, c := range s.waiting {
		s.finishLocked(c, nil, s.err)
	}
}

// Done is closed once the store is closed and no longer uses its sender. A handler
// waits for it before it returns, because its stream ends then.
func (s *Store) Done() <-chan struct{} { return s.done }
