package server

import (
	"context"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
)

// withDetail attaches a message to an error.
func withDetail(err *connect.Error, detail proto.Message) error {
	if d, detailErr := connect.NewErrorDetail(detail); detailErr == nil {
		err.AddDetail(d)
	}
	return err
}

// coding is the interceptor that gives every error its code, in one place.
type coding struct{}

func (coding) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		res, err := next(ctx, req)
		return res, wireError(err)
	}
}

func (coding) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

func (coding) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		return wireError(next(ctx, conn))
	}
}
