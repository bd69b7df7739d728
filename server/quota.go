package server

import (
	"context"
	"errors"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/access"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/unary"
)

// storing counts the bytes that a tenant sends to be stored.
type storing struct{ gate *gate }

// storedAtOnce is how many bytes of a stream are counted together.
const storedAtOnce = 256 << 10

// size returns how many bytes of a message count for the tenant.
func (s *storing) size(ctx context.Context, procedure string, msg any) int64 {
	if callOf(ctx).meter == nil || !scopeOf(procedure).Allows(access.Write) {
		return 0
	}
	return kept(msg)
}

// count counts bytes. The caller calls end when the call has ended.
func (s *storing) count(ctx context.Context, n int64) (end func(), err error) {
	if n == 0 {
		return func() {}, nil
	}
	c := callOf(ctx)
	end, err = c.meter.Store(ctx, n)
	if errors.Is(err, access.ErrExhausted) {
		err = s.gate.exhausted(ctx, c.Principal, err)
	}
	return end, err
}

// kept returns how many bytes of a message may end up in the store. Removals count as
// 0; otherwise a tenant could never get below its limit again.
func kept(msg any) (n int64) {
	switch m := msg.(type) {
	case *stetv1.CommitRequest:
		for _, row := range m.GetSet() {
			n += int64(len(row.GetKey()) + len(row.GetValue()))
		}
		return n
	case *agentv1.AgentClientMessage: // the client stores everything
		return 0
	case proto.Message:
		if _, removes := target(msg); !removes {
			return int64(proto.Size(m))
		}
	}
	return 0
}

// grows reports whether a call stores more than was sent: files of the server's machine, or
// a copy of what is stored.
func grows(msg any) bool {
	switch msg.(type) {
	case *stetv1.CreateCheckpointRequest, *stetv1.RewindRequest, *stetv1.UndoRequest, *stetv1.RedoRequest, *stetv1.CopyThreadRequest:
		return true
	}
	return false
}

func (s *storing) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		msg := unary.Message(req.Any())
		if m := callOf(ctx).meter; m != nil && grows(msg) {
			defer m.Changed()
		}
		end, err := s.count(ctx, s.size(ctx, req.Spec().Procedure, msg))
		if err != nil {
			return nil, err
		}
		defer end()
		return next(ctx, req)
	}
}

func (s *storing) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

func (s *storing) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		counted := &storingConn{StreamingHandlerConn: conn, ctx: ctx, storing: s}
		defer counted.end()
		return next(ctx, counted)
	}
}

// storingConn counts the bytes received on a stream. One goroutine receives.
type storingConn struct {
	connect.StreamingHandlerConn
	ctx     context.Context // of the stream; Receive has no context
	storing *storing
	ends    []func()
	waiting int64 // bytes that are not counted yet
}

func (c *storingConn) Receive(msg any) error {
	if err := c.StreamingHandlerConn.Receive(msg); err != nil {
		return err
	}
	// Small messages are counted in groups: each count takes more memory than such a
	// message, as long as the stream lasts.
	if c.waiting += c.storing.size(c.ctx, c.Spec().Procedure, msg); c.waiting < storedAtOnce {
		return nil
	}
	end, err := c.storing.count(c.ctx, c.waiting)
	if err == nil {
		c.ends, c.waiting = append(c.ends, end), 0
	}
	return err
}

func (c *storingConn) end() {
	for _, end := range c.ends {
		end()
	}
	if m := callOf(c.ctx).meter; m != nil && c.waiting > 0 {
		m.Changed() // measure what was not counted
	}
}
