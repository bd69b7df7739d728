package server

import (
	"context"
	"errors"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/access"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
)

// storing counts what a tenant sends to be stored.
type storing struct{ gate *gate }

// store counts a message. The caller calls end when the call has ended.
func (s *storing) store(ctx context.Context, procedure string, msg any) (end func(), err error) {
	c := callOf(ctx)
	n := int64(0)
	if c.meter != nil && scopeOf(procedure).Allows(access.Write) {
		n = kept(msg)
	}
	if n == 0 {
		return func() {}, nil
	}
	end, err = c.meter.Store(ctx, n)
	if errors.Is(err, access.ErrExhausted) {
		err = s.gate.exhausted(ctx, c.Principal, err)
	}
	return end, err
}

// kept returns how many bytes of a message may end up in the store. What only
// removes counts for nothing: else nobody could get below a limit again.
func kept(msg any) (n int64) {
	switch m := msg.(type) {
	case *stetv1.CommitRequest:
		for _, row := range m.GetSet() {
			n += int64(len(row.GetKey()) + len(row.GetValue()))
		}
		return n
	case *agentv1.AgentClientMessage: // of which the client keeps everything
		return 0
	case proto.Message:
		if _, removes := target(msg); !removes {
			return int64(proto.Size(m))
		}
	}
	return 0
}

// captures reports whether a call stores more than was sent: files of the server's
// machine.
func captures(msg any) bool {
	_, ok := msg.(*stetv1.CreateCheckpointRequest)
	return ok
}

func (s *storing) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		if m := callOf(ctx).meter; m != nil && captures(req.Any()) {
			defer m.Changed()
		}
		end, err := s.store(ctx, req.Spec().Procedure, req.Any())
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

// storingConn counts what comes in on a stream. One goroutine receives.
type storingConn struct {
	connect.StreamingHandlerConn
	ctx     context.Context // of the stream, which Receive is not given
	storing *storing
	ends    []func()
}

func (c *storingConn) Receive(msg any) error {
	if err := c.StreamingHandlerConn.Receive(msg); err != nil {
		return err
	}
	end, err := c.storing.store(c.ctx, c.Spec().Procedure, msg)
	if err == nil {
		c.ends = append(c.ends, end)
	}
	return err
}

func (c *storingConn) end() {
	for _, end := range c.ends {
		end()
	}
}
