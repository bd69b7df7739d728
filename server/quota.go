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

// store counts a message.
func (s *storing) store(ctx context.Context, procedure string, msg any) error {
	c := callOf(ctx)
	if c.meter == nil || !scopeOf(procedure).Allows(access.Write) {
		return nil
	}
	n := kept(msg)
	if n == 0 {
		return nil
	}
	err := c.meter.Store(ctx, n)
	if errors.Is(err, access.ErrExhausted) {
		return s.gate.exhausted(ctx, c.Principal, err)
	}
	return err
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

func (s *storing) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		if err := s.store(ctx, req.Spec().Procedure, req.Any()); err != nil {
			return nil, err
		}
		return next(ctx, req)
	}
}

func (s *storing) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

func (s *storing) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		return next(ctx, &storingConn{StreamingHandlerConn: conn, ctx: ctx, storing: s})
	}
}

// storingConn counts what comes in on a stream.
type storingConn struct {
	connect.StreamingHandlerConn
	ctx     context.Context // of the stream, which Receive is not given
	storing *storing
}

func (c *storingConn) Receive(msg any) error {
	if err := c.StreamingHandlerConn.Receive(msg); err != nil {
		return err
	}
	return c.storing.store(c.ctx, c.Spec().Procedure, msg)
}
