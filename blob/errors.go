package blob

import (
	"errors"
	"fmt"
)

// Errors that callers branch on with errors.Is. Stores wrap them with the id
// and the cause.
var (
	// ErrNotFound says that no blob of that id is stored.
	ErrNotFound = errors.New("blob not found")
	// ErrInvalidID says that bytes or text cannot be an ID.
	ErrInvalidID = errors.New("invalid blob id")
	// ErrMismatch says that content offered to Put does not have the id that it
	// was offered under. Nothing was stored.
	ErrMismatch = errors.New("content does not match blob id")
	// ErrCorrupt says that stored bytes are not the ones that were written.
	ErrCorrupt = errors.New("blob is corrupt")
	// ErrWrongKey says that a store is sealed with another key than the one given.
	ErrWrongKey = errors.New("wrong key")
	// ErrTooLarge says that a blob exceeds what the store or the caller allows.
	ErrTooLarge = errors.New("blob too large")
	// ErrReadOnly says that the store takes no writes, by choice or after a
	// failure that makes further writes unsafe.
	ErrReadOnly = errors.New("store is read-only")
	// ErrFull says that there is no room left. What was acknowledged is safe.
	ErrFull = errors.New("no space left for the store")
	// ErrClosed says that the store was closed.
	ErrClosed = errors.New("store is closed")
)

// NotFound returns an error for id that wraps ErrNotFound.
func NotFound(id ID) error { return fmt.Errorf("%w: %s", ErrNotFound, id) }

// Corrupt returns an error for id that wraps ErrCorrupt and says what is wrong.
func Corrupt(id ID, format string, args ...any) error {
	return fmt.Errorf("%w: %s: %s", ErrCorrupt, id, fmt.Sprintf(format, args...))
}
