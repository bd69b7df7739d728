package agentrun

import (
	"context"
	"errors"
	"fmt"
	"io"

	"connectrpc.com/connect"

	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/gen/agent/v1/agentv1connect"
)

// Connect returns the transport over a connect client. Its HTTP client must support
// HTTP/2, which bidirectional streams need.
func Connect(client agentv1connect.AgentServiceClient) Transport {
	return TransportFunc(func(ctx context.Context) (Stream, error) {
		stream, err := client.Run(ctx)
		if err != nil {
			return nil, classify(ctx, "open stream", err)
		}
		// net/http notices the end of a context only after the request body has
		// ended, so the body must be closed, too. Closing it twice is not an error.
		context.AfterFunc(ctx, func() { _ = stream.CloseRequest() })
		return &connectStream{ctx: ctx, stream: stream}, nil
	})
}

type connectStream struct {
	ctx    context.Context // of the stream: shows whether the end was intended
	stream *connect.BidiStreamForClientSimple[agentv1.AgentClientMessage, agentv1.AgentServerMessage]
}

func (s *connectStream) Send(msg *agentv1.AgentClientMessage) error {
	if err := s.stream.Send(msg); err != nil {
		return classify(s.ctx, "send frame", err)
	}
	return nil
}

func (s *connectStream) Receive() (*agentv1.AgentServerMessage, error) {
	msg, err := s.stream.Receive()
	switch {
	case err == nil:
		return msg, nil
	case errors.Is(err, io.EOF) && connect.CodeOf(err) == connect.CodeUnknown:
		return nil, io.EOF
	}
	return nil, classify(s.ctx, "receive frame", err)
}

func (s *connectStream) CloseSend() error { return s.stream.CloseRequest() }

// classify marks errors for which a new stream may help.
func classify(ctx context.Context, doing string, err error) error {
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", doing, ctx.Err())
	case isLost(err):
		return fmt.Errorf("%s: %w: %w", doing, ErrConnectionLost, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// isLost reports whether an error is due to the connection or to a server that is
// temporarily unable, rather than to the request.
func isLost(err error) bool {
	said := connect.IsWireError(err) // sent by the server
	switch connect.CodeOf(err) {
	case connect.CodeUnavailable, connect.CodeAborted, connect.CodeDeadlineExceeded, connect.CodeCanceled:
		return true
	case connect.CodeResourceExhausted:
		return said
	case connect.CodeUnknown, connect.CodeInternal:
		return !said
	case connect.CodeInvalidArgument: // connect's code for a truncated frame
		return !said && errors.Is(err, io.ErrUnexpectedEOF)
	}
	return false
}
