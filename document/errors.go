package document

import (
	"fmt"

	"github.com/stet-dev/stet/fault"
)

// Errors that callers branch on with errors.Is.
var (
	// ErrConflict says that a document is not at the expected version. Nothing was
	// changed.
	ErrConflict = fault.Named(fault.Stale, "document-conflict", "the document has changed")
	// ErrInvalid says that an argument is invalid. Nothing was changed.
	ErrInvalid = fault.Named(fault.Invalid, "invalid-document", "invalid document")
	// ErrDataLoss says that stored content can no longer be read.
	ErrDataLoss = fault.Named(fault.Damaged, "document-data-loss", "the content of the document is lost")
)

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
}
