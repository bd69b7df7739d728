package blob

import (
	"fmt"

	"github.com/stet-dev/stet/fault"
)

// Errors that callers branch on with errors.Is. Stores wrap them with the id
// and the cause.
var (
	// ErrNotFound says that no blob with that id is stored.
	ErrNotFound = fault.Named(fault.NotFound, "blob-not-found", "blob not found")
	// ErrInvalidID says that bytes or text cannot be an ID.
	ErrInvalidID = fault.Named(fault.Invalid, "invalid-id", "invalid blob id")
	// ErrMismatch says that content offered to Put does not have the id that it
	// was offered under. Nothing was stored.
	ErrMismatch = fault.Named(fault.Invalid, "mismatch", "content does not match blob id")
	// ErrCorrupt says that stored bytes are not the ones that were written.
	ErrCorrupt = fault.Named(fault.Damaged, "corrupt-blob", "blob is corrupt")
	// ErrWrongKey says that a store is sealed with another key than the one given.
	ErrWrongKey = fault.Named(fault.WrongKey, "wrong-key", "wrong key")
	// ErrTooLarge says that a blob exceeds what the store or the caller allows.
	ErrTooLarge = fault.Named(fault.Exhausted, "blob-too-large", "blob too large")
	// ErrReadOnly says that the store takes no writes, by choice or after a
	// failure that makes further writes unsafe.
	ErrReadOnly = fault.Named(fault.ReadOnly, "read-only", "store is read-only")
	// ErrFull says that there is no room left. What was acknowledged is safe.
	ErrFull = fault.Named(fault.Exhausted, "full", "no space left for the store")
	// ErrClosed says that the store was closed.
	ErrClosed = fault.Named(fault.Closed, "store-closed", "store is closed")
)

// NotFound returns an error for id that wraps ErrNotFound.
func NotFound(id ID) error { return fmt.Errorf("%w: %s", ErrNotFound, id) }

// Corrupt returns an error for id that wraps ErrCorrupt and says what is wrong.
func Corrupt(id ID, format string, args ...any) error {
	return fmt.Errorf("%w: %s: %s", ErrCorrupt, id, fmt.Sprintf(format, args...))
}
