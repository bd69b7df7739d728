package thread

import (
	"fmt"

	"github.com/stet-dev/stet/fault"
)

// Errors that callers branch on with errors.Is.
var (
	// ErrNotFound says that there is no such frame or thread.
	ErrNotFound = fault.Named(fault.NotFound, "frame-not-found", "frame not found")
	// ErrInvalid says that an argument is invalid. Nothing was changed.
	ErrInvalid = fault.Named(fault.Invalid, "invalid-frame", "invalid frame")
	// ErrDataLoss says that a stored value can no longer be read.
	ErrDataLoss = fault.Named(fault.Damaged, "frame-data-loss", "a value of the frame is lost")
)

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
}
