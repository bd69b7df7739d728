package server

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"connectrpc.com/connect"
	"golang.org/x/sync/semaphore"
	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/access"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/gen/aiserver/v1/aiserverv1connect"
	"github.com/stet-dev/stet/gen/stet/v1/stetv1connect"
	"github.com/stet-dev/stet/server/internal/wire"
)

const (
	memoryWait  = 10 * time.Second    // for memory, if the caller has no earlier deadline
	wholeAnswer = 2 * wire.MaxMessage // an answer and its encoded form
	smallAnswer = 64 << 10            // of a call with a tiny answer
	smallEvent  = 16 << 10            // of a stream; not worth counting
)

// memory limits the memory of all answers of a server. Callers that find none left
// wait, in order of arrival.
type memory struct {
	total int64
	left  *semaphore.Weighted
}

func newMemory(total int64) *memory { return &memory{total: total, left: semaphore.NewWeighted(total)} }

// acquire waits for n bytes.
func (m *memory) acquire(ctx context.Context, n int64) error {
	if n > m.total {
		return fmt.Errorf("%w: this takes %d bytes of memory, but the server has %d for all answers; read large blobs with stet.v1.BlobService/Open", blob.ErrTooLarge, n, m.total)
	}
	if m.left.TryAcquire(n) {
		return nil
	}
	waiting, cancel := context.WithTimeout(ctx, memoryWait)
	defer cancel()
	if m.left.Acquire(waiting, n) == nil {
		return nil
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	out := connect.NewError(connect.CodeResourceExhausted, fmt.Errorf("the server has no memory left for this answer: all %d bytes are in use; retry in a few seconds", m.total))
	out.Meta().Set("Retry-After", "5")
	return out
}

// allowance is the memory that one call has. Its methods do nothing on nil, for
// internal calls.
type allowance struct {
	memory *memory
	mu     sync.Mutex // guards the rest; not held while waiting
	held   int64
	over   bool // the call has ended
}

// grow raises the allowance to n bytes.
func (a *allowance) grow(ctx context.Context, n int64) error {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	more := n - a.held
	a.mu.Unlock()
	if more <= 0 {
		return nil
	}
	if err := a.memory.acquire(ctx, more); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over { // a shared read outlives the call that began it
		a.memory.left.Release(more)
		return context.Canceled
	}
	a.held += more
	return nil
}

// shrink lowers the allowance to n bytes.
func (a *allowance) shrink(n int64) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if less := a.held - n; less > 0 {
		a.held = n
		a.memory.left.Release(less)
	}
}

// end releases everything.
func (a *allowance) end() {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.memory.left.Release(a.held)
	a.held, a.over = 0, true
}

// reserve is called before large content is read. A call reads one at a time, so it
// needs memory for the largest, not for all.
func (a *allowance) reserve(ctx context.Context, size int64) error {
	return a.grow(ctx, wholeAnswer+2*size)
}

// answering is the interceptor that limits answers: each by the size of a message,
// and all together by the memory of the server. A unary call holds its memory from
// its start until its answer is written.
type answering struct{ memory *memory }

// shorter gives advice for answers that do not fit into one message.
var shorter = map[string]string{
	stetv1connect.CheckpointServicePlanRewindProcedure:                                  "plan it for some of the paths, or with the command line on the server's machine",
	stetv1connect.CheckpointServiceDiffProcedure:                                        "request some of the paths",
	stetv1connect.ConversationServiceGetProcedure:                                       "read the state as a blob with stet.v1.BlobService/Open",
	stetv1connect.CheckpointServiceListPinsProcedure:                                    "remove pins that are not needed",
	aiserverv1connect.BackgroundComposerServiceGetLatestAgentConversationStateProcedure: "read the state as a blob with stet.v1.BlobService/Open",
}

func (a answering) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		c := callOf(ctx)
		need := int64(wholeAnswer)
		if scopeOf(req.Spec().Procedure).Allows(access.Write) {
			need = smallAnswer
		}
		if err := c.memory.grow(ctx, need); err != nil {
			return nil, err
		}
		res, err := next(ctx, req)
		if err != nil || res == nil {
			return res, err
		}
		size := int64(0)
		if m, ok := res.Any().(proto.Message); ok {
			size = int64(proto.Size(m))
		}
		if size > wire.MaxMessage {
			return nil, tooLong(req.Spec().Procedure, size)
		}
		c.memory.shrink(max(smallAnswer, 2*size))
		return res, c.memory.grow(ctx, 2*size)
	}
}

func tooLong(procedure string, size int64) error {
	advice := shorter[procedure]
	if advice == "" {
		advice = "request less at once"
	}
	return connect.NewError(connect.CodeResourceExhausted, fmt.Errorf("the answer has %d bytes; the limit of a message is %d; %s", size, wire.MaxMessage, advice))
}

func (answering) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

func (a answering) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		return next(ctx, &answeringConn{StreamingHandlerConn: conn, ctx: ctx, memory: a.memory})
	}
}

// answeringConn counts a message while it is sent, until the peer has room for it.
type answeringConn struct {
	connect.StreamingHandlerConn
	ctx    context.Context // of the stream; Send has no context
	memory *memory
}

func (c *answeringConn) Send(msg any) error {
	m, ok := msg.(proto.Message)
	if !ok || m == nil {
		return c.StreamingHandlerConn.Send(msg)
	}
	size := int64(proto.Size(m))
	if size < smallEvent {
		return c.StreamingHandlerConn.Send(msg)
	}
	if err := c.memory.acquire(c.ctx, 2*size); err != nil {
		return err
	}
	defer c.memory.left.Release(2 * size)
	return c.StreamingHandlerConn.Send(msg)
}
