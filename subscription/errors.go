package subscription

import (
	"fmt"

	"github.com/stet-dev/stet/fault"
)

// Errors that callers branch on with errors.Is.
var (
	// ErrNotFound says that there is no such subscription.
	ErrNotFound = fault.Named(fault.NotFound, "subscription-not-found", "subscription not found")
	// ErrExists says that a subscription with the id exists with another configuration.
	ErrExists = fault.Named(fault.Exists, "subscription-exists", "subscription exists with another configuration")
	// ErrInvalid says that an argument is invalid. Nothing was changed.
	ErrInvalid = fault.Named(fault.Invalid, "invalid-subscription", "invalid")
	// ErrFenced says that the wake is no longer the current one.
	ErrFenced = fault.Named(fault.Stale, "wake-fenced", "the wake is over")
	// ErrClaimed says that another worker has the wake. The error is a *ClaimedError.
	ErrClaimed = fault.Named(fault.Conflict, "wake-claimed", "another worker has claimed the wake")
	// ErrIdle says that there is nothing to process.
	ErrIdle = fault.Named(fault.Conflict, "subscription-idle", "subscription has no pending work")
	// ErrCursor says that a cursor cannot be moved there: back, beyond the end, or of a
	// stream that is not part of the subscription.
	ErrCursor = fault.Named(fault.Conflict, "bad-cursor", "cursor cannot be moved there")
)

// ClaimedError names the worker that has a wake. It wraps ErrClaimed.
type ClaimedError struct {
	Holder     string
	Generation uint64
}

func (e *ClaimedError) Error() string {
	return fmt.Sprintf("%v: %.64q has generation %d", ErrClaimed, e.Holder, e.Generation)
}

// Unwrap returns ErrClaimed.
func (e *ClaimedError) Unwrap() error { return ErrClaimed }

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
}
