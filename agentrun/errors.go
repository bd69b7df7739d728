package agentrun

import (
	"fmt"

	"github.com/stet-dev/stet/fault"
)

// Errors that callers branch on with errors.Is.
var (
	// ErrConnectionLost says that a stream ended although neither side wanted it to. A
	// Stream wraps it if continuing from the latest checkpoint may help.
	ErrConnectionLost = fault.New(fault.Unreachable, "connection lost")
	// ErrNoCheckpoint says that there is no checkpoint to resume from.
	ErrNoCheckpoint = fault.New(fault.NotFound, "no checkpoint to resume from")
	// ErrNotTaken says that the server ended a run without accepting its message. The
	// message stays in the queue.
	ErrNotTaken = fault.New(fault.Busy, "the server did not accept the message")
	// ErrProtocol says that the peer sent something that has no place in a run.
	ErrProtocol = fault.Named(fault.Invalid, "protocol-violation", "protocol violation")
	// ErrUnsupported says that a tool or an action is not supported here.
	ErrUnsupported = fault.New(fault.Unsupported, "not supported")
	// ErrInvalid says that an argument is invalid.
	ErrInvalid = fault.New(fault.Invalid, "invalid")
	// ErrUnknownOutcome says that a call was begun but the client died before it
	// recorded a result, so its outcome is unknown. It is not executed again.
	ErrUnknownOutcome = fault.New(fault.Uncertain, "the call was interrupted; its outcome is unknown")
)

// Failure is an error of an agent whose text may be sent to the client. Other errors
// stay on the server.
type Failure struct{ Text string }

func (f *Failure) Error() string { return f.Text }

func protocol(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrProtocol, fmt.Sprintf(format, args...))
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
}
