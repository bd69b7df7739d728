package kvstream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
)

// respond performs a request and sends the answer.
func (r *Responder) respond(ctx context.Context, t *task) {
	begin := time.Now()
	work, span := startRemote(ctx, r.tracer, "agent_kv.controlled."+t.op, t.msg.GetSpanContext())
	work, cancel := context.WithTimeout(work, r.opts.Timeout)
	defer cancel()
	answer, err := r.answer(work, t)
	r.leave(t) // before sending the answer, which may block on the peer
	r.metrics.record(work, t.op, begin, err)
	endSpan(span, err)
	if err != nil {
		r.report(t, err)
	}
	r.send(ctx, answer)
}

// answer returns the answer to a request, and its error.
func (r *Responder) answer(ctx context.Context, t *task) (*agentv1.KvClientMessage, error) {
	answer := &agentv1.KvClientMessage{Id: t.msg.GetId()}
	switch args := t.msg.GetMessage().(type) {
	case *agentv1.KvServerMessage_GetBlobArgs:
		data, err := r.get(ctx, t)
		result := &agentv1.GetBlobResult{BlobData: data}
		answer.Message = &agentv1.KvClientMessage_GetBlobResult{GetBlobResult: result}
		if size := proto.Size(answer); size > r.opts.MaxMessage {
			err = tooLarge("answer", size, r.opts.MaxMessage)
		}
		if err != nil {
			answer.Message = failedResult(err)
		}
		return answer, err
	case *agentv1.KvServerMessage_SetBlobArgs:
		err := r.set(ctx, t, args.SetBlobArgs.GetBlobData())
		answer.Message = failedResult(err)
		return answer, err
	}
	// Send an answer without a result to end the peer's wait.
	return answer, ErrUnknownRequest
}

// failedResult is the result that has a field for an error; nil is a set that
// succeeded. A failed get is answered with it too: a get result without data means that
// the blob does not exist, and the peer would take a failing disk for data loss.
func failedResult(err error) *agentv1.KvClientMessage_SetBlobResult {
	result := &agentv1.SetBlobResult{}
	if err != nil {
		result.Error = &agentv1.Error{Message: textOf(err)}
	}
	return &agentv1.KvClientMessage_SetBlobResult{SetBlobResult: result}
}

// tooLarge names the size and the limit of a message.
func tooLarge(what string, size, limit int) error {
	return fmt.Errorf("%s of %d bytes, the limit is %d: %w", what, size, limit, blob.ErrTooLarge)
}

// get returns nil and no error for a blob that is absent, and never nil for an existing
// one.
func (r *Responder) get(ctx context.Context, t *task) ([]byte, error) {
	if err := r.inTurn(ctx, t); err != nil {
		return nil, err
	}
	data, err := r.local.Get(ctx, t.id)
	switch {
	case errors.Is(err, blob.ErrNotFound):
		r.mu.Lock()
		r.stats.Absent++
		r.mu.Unlock()
		return nil, nil
	case err != nil:
		return nil, err
	case !r.opts.Opaque && blob.Sum(data) != t.id:
		return nil, blob.Corrupt(t.id, "stored content has another SHA-256")
	case data == nil:
		data = []byte{}
	}
	return data, nil
}

// set stores a blob durably: the answer is the peer's only confirmation.
func (r *Responder) set(ctx context.Context, t *task, data []byte) error {
	if size := proto.Size(t.msg); size > r.opts.MaxMessage {
		return tooLarge("request", size, r.opts.MaxMessage)
	}
	if err := r.inTurn(ctx, t); err != nil {
		return err
	}
	if !r.opts.Opaque {
		if got := blob.Sum(data); got != t.id {
			return &blob.MismatchError{Want: t.id, Got: got}
		}
	}
	if err := r.local.Put(ctx, blob.Blob{ID: t.id, Data: data}); err != nil {
		return err
	}
	return r.local.Flush(ctx)
}

// inTurn rejects an invalid id and waits for earlier requests.
func (r *Responder) inTurn(ctx context.Context, t *task) error {
	if t.idErr != nil {
		return t.idErr
	}
	if t.before == nil {
		return nil
	}
	select {
	case <-t.before:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *Responder) report(t *task, err error) {
	r.mu.Lock()
	r.stats.Failed++
	r.mu.Unlock()
	r.opts.OnError(Failure{Request: t.msg.GetId(), Op: t.op, Blob: t.id, Err: err})
}

// send keeps the first error, which ends the stream for all. After the stream has
// ended it sends nothing. In particular, an interrupted get must not be answered: no
// data would mean that the blob does not exist.
func (r *Responder) send(ctx context.Context, answer *agentv1.KvClientMessage) {
	select {
	case r.sending <- struct{}{}:
	case <-ctx.Done():
		return
	}
	defer func() { <-r.sending }()
	if ctx.Err() != nil || r.failed() {
		return
	}
	if err := r.out.Send(answer); err != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.err = fmt.Errorf("send key-value answer: %w", err)
	}
}

func (r *Responder) failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err != nil
}
