package server

import (
	"context"
	"errors"

	"connectrpc.com/connect"

	"github.com/stet-dev/stet/fault"
)

type drainKey struct{}

// withDrain attaches a context that ends when the server begins to stop.
func withDrain(ctx, drain context.Context) context.Context {
	return context.WithValue(ctx, drainKey{}, drain)
}

// drainOf returns that context. A handler that nothing stops has none.
func drainOf(ctx context.Context) (drain context.Context, ok bool) {
	drain, ok = ctx.Value(drainKey{}).(context.Context)
	return drain, ok
}

// errStopping answers a request that had not begun to wait when the server began to stop.
var errStopping = fault.New(fault.Closed, "the server is stopping: try again")

// draining ends endless streams cleanly when the server begins to stop, so that
// followers reconnect later.
type draining struct{}

func (draining) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc { return next }

func (draining) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

func (draining) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		drain, ok := drainOf(ctx)
		if !ok || !endless[conn.Spec().Procedure] {
			return next(ctx, conn)
		}
		inner, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(drain, cancel)()
		err := next(inner, conn)
		if drain.Err() != nil && ctx.Err() == nil && errors.Is(err, context.Canceled) {
			return nil
		}
		return err
	}
}
