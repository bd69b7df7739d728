package agentrun

import (
	"context"

	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
)

// Transport opens streams to a server.
type Transport interface {
	// Open starts a stream, which ends when ctx does. An error that wraps
	// ErrConnectionLost means that a retry may help.
	Open(ctx context.Context) (Stream, error)
}

// Stream is the client's end of a run. Send is called by one goroutine at a time
// and Receive by another one.
type Stream interface {
	// Send sends a frame. It may return before the server has it.
	Send(*agentv1.AgentClientMessage) error
	// Receive returns the next frame, io.EOF when the server has ended the run
	// normally, and an error that wraps ErrConnectionLost when the stream broke.
	Receive() (*agentv1.AgentServerMessage, error)
	// CloseSend ends the sending side.
	CloseSend() error
}

// ServerStream is the server's end of a run, such as a bidirectional stream of
// connect. Serve calls Send from one goroutine at a time.
type ServerStream interface {
	Send(*agentv1.AgentServerMessage) error
	Receive() (*agentv1.AgentClientMessage, error)
}

// TransportFunc is a function that is a Transport.
type TransportFunc func(ctx context.Context) (Stream, error)

// Open calls the function.
func (f TransportFunc) Open(ctx context.Context) (Stream, error) { return f(ctx) }
