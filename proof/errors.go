package proof

import (
	"fmt"

	"github.com/stet-dev/stet/fault"
)

var (
	// ErrBroken says that a proof was changed, cut off or is inconsistent.
	ErrBroken = fault.New(fault.Damaged, "the proof is not valid")
	// ErrNewer says that a later release wrote the proof.
	ErrNewer = fault.New(fault.NewerFormat, "the proof has a newer format")
	// ErrOtherKey says that a proof is signed with another key than the expected one: it
	// comes from another store, or somebody else made it.
	ErrOtherKey = fault.New(fault.WrongKey, "the proof is signed with another key")
	// ErrBadKey says that a text or a file is not a key that can be used here.
	ErrBadKey = fault.New(fault.Invalid, "not a usable Ed25519 key")
	// ErrNotFound says that the store, or the proof, does not have the requested item.
	ErrNotFound = fault.New(fault.NotFound, "not found")
	// ErrTooLarge says that content does not fit into a proof.
	ErrTooLarge = fault.New(fault.Exhausted, "too large for a proof")
)

func broken(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrBroken, fmt.Sprintf(format, args...))
}
