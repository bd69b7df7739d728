package agentrun

import (
	"context"
	"errors"
	"fmt"

	"connectrpc.com/connect"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation/wirelimit"
	"github.com/stet-dev/stet/fault"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/gen/agent/v1/agentv1connect"
	"github.com/stet-dev/stet/internal/wirecode"
)

// Service is agent.v1.AgentService over an Agent, for connect.
type Service struct{ opts ServeOptions }

var _ agentv1connect.AgentServiceHandler = (*Service)(nil)

// NewService returns the service.
func NewService(opts ServeOptions) *Service { return &Service{opts: opts} }

// Run implements agentv1connect.AgentServiceHandler.
func (s *Service) Run(ctx context.Context, stream *connect.BidiStream[agentv1.AgentClientMessage, agentv1.AgentServerMessage]) error {
	return ConnectError(Serve(ctx, served{stream}, s.opts))
}

// served is the stream of a client. It marks the errors of frames that were not accepted.
type served struct {
	*connect.BidiStream[agentv1.AgentClientMessage, agentv1.AgentServerMessage]
}

// Receive implements ServerStream.
func (s served) Receive() (*agentv1.AgentClientMessage, error) {
	msg, err := s.BidiStream.Receive()
	var refused *connect.Error
	if errors.As(err, &refused) && (refused.Code() == connect.CodeInvalidArgument || refused.Code() == connect.CodeResourceExhausted) {
		err = &refusedFrame{refused}
	}
	return msg, err
}

// refusedFrame says that a frame was not accepted, in words for the client that sent it.
// It is a type of its own because an agent, which may be a client itself, can also fail
// with an error of connect; that one is not for this client.
type refusedFrame struct{ said *connect.Error }

func (r *refusedFrame) Error() string { return r.said.Error() }

// Unwrap returns the error of connect.
func (r *refusedFrame) Unwrap() error { return r.said }

// ConnectError converts an error of Serve for connect. The client gets the text of a
// *Failure and of protocol errors, but only the code, the reason and a general
// description of others.
func ConnectError(err error) error {
	var failure *Failure
	var refused *refusedFrame
	switch {
	case err == nil:
		return nil
	case errors.As(err, &failure):
		return connect.NewError(connect.CodeInternal, failure)
	case errors.As(err, &refused):
		return refused.said
	case errors.Is(err, ErrProtocol):
		return named(wirecode.Of(fault.Invalid), err, ErrProtocol)
	}
	code, why := meaning(err)
	return named(code, fmt.Errorf("run: %w", why), why)
}

// named returns an error with the reasons of kind.
func named(code connect.Code, err, kind error) error {
	out := connect.NewError(code, err)
	wirecode.Name(out.Meta(), kind)
	return out
}

// errMalformed says that the state of a request cannot be read.
var errMalformed = fault.Under(wirelimit.ErrMalformed, "", "the state is malformed")

// meaning returns the code of an error, and what a client may know about it.
func meaning(err error) (connect.Code, error) {
	if code, ok := wirecode.Ended(err); ok {
		if code == connect.CodeCanceled {
			return code, context.Canceled
		}
		return code, context.DeadlineExceeded
	}
	switch {
	case errors.Is(err, blob.ErrInvalidID), errors.Is(err, wirelimit.ErrMalformed), errors.Is(err, wirelimit.ErrExceeded):
		return wirecode.Of(fault.Invalid), errMalformed
	case errors.Is(err, ErrConnectionLost), errors.Is(err, blob.ErrClosed):
		return wirecode.Of(fault.Unreachable), ErrConnectionLost
	case errors.Is(err, ErrUnsupported):
		return wirecode.Of(fault.Unsupported), ErrUnsupported
	case errors.Is(err, blob.ErrTooLarge):
		// Not the code of its class: clients try again after that one.
		return connect.CodeOutOfRange, fmt.Errorf("a part of the state is too large for a message: %w", err)
	case errors.Is(err, blob.ErrNotFound), errors.Is(err, blob.ErrCorrupt):
		return wirecode.Of(fault.Damaged), errors.New("a part of the state is missing") // a state names its parts
	}
	return wirecode.Of(fault.Unknown), errors.New("the agent failed")
}
