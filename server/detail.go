package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/conversation/wirelimit"
	"github.com/stet-dev/stet/fault"
	"github.com/stet-dev/stet/internal/wirecode"
)

// withDetail attaches a message to an error.
func withDetail(err *connect.Error, detail proto.Message) error {
	if d, detailErr := connect.NewErrorDetail(detail); detailErr == nil {
		err.AddDetail(d)
	}
	return err
}

// coding is the interceptor that sets the code of every error. If hide is set, the
// caller is not the owner of the machine: for an unexpected error it gets only the
// request's id in the log.
type coding struct {
	hide   bool
	logger *slog.Logger
}

func (c coding) code(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(context.Cause(ctx), errRevoked) {
		err = connect.NewError(connect.CodeUnauthenticated, errRevoked)
	}
	coded := wireError(err)
	at := callOf(ctx)
	at.code = connect.CodeOf(coded).String()
	if connect.CodeOf(coded) != connect.CodeInternal {
		return c.away(ctx, err, coded)
	}
	c.logger.Error("internal", slog.String("request", at.request), slog.String("path", at.procedure), slog.Any("error", err))
	var said *connect.Error
	if !c.hide || errors.As(err, &said) { // in words that were meant for the caller
		return coded
	}
	return connect.NewError(connect.CodeInternal, fmt.Errorf("unexpected error (server log: request %s)", at.request))
}

// away hides hosts and databases in errors of the backend from callers. The class and
// the reasons stay.
func (c coding) away(ctx context.Context, err, coded error) error {
	class := fault.Declared(err)
	if !c.hide || class != fault.Unreachable && class != fault.Uncertain {
		return coded
	}
	at := callOf(ctx)
	c.logger.Warn("backend", slog.String("request", at.request), slog.String("path", at.procedure), slog.Any("error", err))
	text := errors.New("the store is temporarily unreachable; retry in a few seconds")
	if code := connect.CodeOf(coded); code != connect.CodeUnavailable {
		text = fmt.Errorf("store connection lost before it answered (server log: request %s)", at.request)
	}
	return withReasons(connect.NewError(connect.CodeOf(coded), text), err)
}

func (c coding) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		if err := marked(req.Any()); err != nil {
			return nil, c.code(ctx, err)
		}
		res, err := next(ctx, req)
		return res, c.code(ctx, err)
	}
}

func (coding) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

func (c coding) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		return c.code(ctx, next(ctx, unmarked{conn}))
	}
}

// unmarked is a stream that returns the errors that its codec left in messages.
type unmarked struct{ connect.StreamingHandlerConn }

// Receive implements connect.StreamingHandlerConn.
func (u unmarked) Receive(msg any) error {
	if err := u.StreamingHandlerConn.Receive(msg); err != nil {
		return received(err)
	}
	return wireError(marked(msg))
}

// received gives an error of receiving its reason. Connect reports what is no message of
// its protocol, such as a cut frame, as an error of arguments.
func received(err error) error {
	var known *connect.Error
	if errors.As(err, &known) && known.Code() == connect.CodeInvalidArgument {
		wirecode.Name(known.Meta(), wirelimit.ErrMalformed)
	}
	return err
}
