package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

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

// coding is the interceptor that gives every error its code, in one place. Where
// hide is set, the caller is not the owner of the machine: of an error that nobody
// has foreseen, it learns only under which number the log has it.
type coding struct {
	hide   bool
	logger *slog.Logger
	known  func(error) connect.Code // of the backend's errors; may be nil
}

func (c coding) code(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(context.Cause(ctx), errRevoked) {
		err = connect.NewError(connect.CodeUnauthenticated, errRevoked)
	}
	coded := backendError(err, c.known)
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
	return connect.NewError(connect.CodeInternal, fmt.Errorf("this failed; the operator finds it in the log as request %s", at.request))
}

// away keeps what an error of the backend tells of hosts and databases from those
// who do not own them.
func (c coding) away(ctx context.Context, err, coded error) error {
	if !c.hide || c.known == nil || c.known(err) == 0 {
		return coded
	}
	at := callOf(ctx)
	c.logger.Warn("backend", slog.String("request", at.request), slog.String("path", at.procedure), slog.Any("error", err))
	if code := connect.CodeOf(coded); code != connect.CodeUnavailable {
		return connect.NewError(code, fmt.Errorf("the store went away before it answered; the operator finds it in the log as request %s", at.request))
	}
	return connect.NewError(connect.CodeUnavailable, errors.New("the store cannot be reached at the moment; retry in a few seconds"))
}

func (c coding) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		res, err := next(ctx, req)
		return res, c.code(ctx, err)
	}
}

func (coding) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

func (c coding) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		return c.code(ctx, next(ctx, conn))
	}
}
