package agentrun

import (
	"context"
	"errors"
	"fmt"

	"connectrpc.com/connect"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation/wirelimit"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/gen/agent/v1/agentv1connect"
)

// Service is agent.v1.AgentService over an Agent, for connect.
type Service struct{ opts ServeOptions }

var _ agentv1connect.AgentServiceHandler = (*Service)(nil)

// NewService returns the service.
func NewService(opts ServeOptions) *Service { return &Service{opts: opts} }

// Run implements agentv1connect.AgentServiceHandler.
func (s *Service) Run(ctx context.Context, stream *connect.BidiStream[agentv1.AgentClientMessage, agentv1.AgentServerMessage]) error {
	return ConnectError(Serve(ctx, stream, s.opts))
}

// ConnectError converts an error of Serve for connect. The client gets the text of a
// *Failure and of protocol errors, but only the code of others.
func ConnectError(err error) error {
	var failure *Failure
	switch {
	case err == nil:
		return nil
	case errors.As(err, &failure):
		return connect.NewError(connect.CodeInternal, failure)
	case errors.Is(err, ErrProtocol):
		return connect.NewError(connect.CodeInvalidArgument, err)
	case errors.Is(err, blob.ErrInvalidID), errors.Is(err, wirelimit.ErrMalformed), errors.Is(err, wirelimit.ErrExceeded):
		return hidden(connect.CodeInvalidArgument, errors.New("the state is malformed"))
	case errors.Is(err, ErrConnectionLost):
		return hidden(connect.CodeUnavailable, ErrConnectionLost)
	case errors.Is(err, ErrUnsupported):
		return hidden(connect.CodeUnimplemented, ErrUnsupported)
	case errors.Is(err, context.Canceled):
		return hidden(connect.CodeCanceled, context.Canceled)
	case errors.Is(err, context.DeadlineExceeded):
		return hidden(connect.CodeDeadlineExceeded, context.DeadlineExceeded)
	case errors.Is(err, blob.ErrClosed):
		return hidden(connect.CodeUnavailable, ErrConnectionLost)
	case errors.Is(err, blob.ErrTooLarge):
		return hidden(connect.CodeOutOfRange, errors.New("a part of the state is too large for a message"))
	case errors.Is(err, blob.ErrNotFound), errors.Is(err, blob.ErrCorrupt):
		return hidden(connect.CodeDataLoss, errors.New("a part of the state is missing"))
	}
	return hidden(connect.CodeInternal, errors.New("the agent failed"))
}

func hidden(code connect.Code, err error) error {
	return connect.NewError(code, fmt.Errorf("run: %w", err))
}
