// Package wirecode says which code an error crosses the wire with. All services use
// its one table of the classes of package fault:
//
//	code := wirecode.Of(fault.Declared(err))
//
// An error also crosses it with the names that [Name] gives it.
//
// This package decides neither what a caller may read of an error nor which errors are for
// callers at all; the services do.
package wirecode

import (
	"context"
	"errors"

	"connectrpc.com/connect"

	"github.com/stet-dev/stet/fault"
)

// codes has a code for each class. docs/SERVER.md has the same table.
var codes = map[fault.Class]connect.Code{
	fault.NotFound:    connect.CodeNotFound,
	fault.Invalid:     connect.CodeInvalidArgument,
	fault.Exists:      connect.CodeAlreadyExists,
	fault.Stale:       connect.CodeAborted,
	fault.Conflict:    connect.CodeFailedPrecondition,
	fault.Unsupported: connect.CodeUnimplemented,
	fault.Busy:        connect.CodeUnavailable,
	fault.Closed:      connect.CodeUnavailable,
	fault.Canceled:    connect.CodeCanceled,
	fault.Unreachable: connect.CodeUnavailable,
	fault.Denied:      connect.CodePermissionDenied,
	fault.Exhausted:   connect.CodeResourceExhausted,
	fault.ReadOnly:    connect.CodeFailedPrecondition,
	fault.WrongKey:    connect.CodeFailedPrecondition,
	fault.NewerFormat: connect.CodeFailedPrecondition,
	fault.RolledBack:  connect.CodeAborted,
	fault.Uncertain:   connect.CodeUnknown,
	fault.Damaged:     connect.CodeDataLoss,
}

// Of returns the code of a class, and CodeInternal for an unknown one.
func Of(class fault.Class) connect.Code {
	if code, ok := codes[class]; ok {
		return code
	}
	return connect.CodeInternal
}

// Ended returns the code of a call that ended early, which says nothing else with
// certainty. ok is false for other errors.
func Ended(err error) (code connect.Code, ok bool) {
	switch {
	case errors.Is(err, context.Canceled):
		return connect.CodeCanceled, true
	case errors.Is(err, context.DeadlineExceeded):
		return connect.CodeDeadlineExceeded, true
	}
	return 0, false
}
