package keyring

import (
	"github.com/stet-dev/stet/fault"
	"github.com/stet-dev/stet/internal/private"
)

// Errors that callers branch on with errors.Is. None carries a secret.
var (
	// ErrWrongKey says that the ring is intact but locked with another passphrase or key
	// than the one given.
	ErrWrongKey = fault.Named(fault.WrongKey, "wrong-keyring-key", "wrong key for the keyring")
	// ErrCorrupt says that the file is not one that this package wrote.
	ErrCorrupt = fault.Named(fault.Damaged, "corrupt-keyring", "keyring is corrupt")
	// ErrVersion says that the file was written in a format of another release.
	ErrVersion = fault.Named(fault.NewerFormat, "newer-keyring", "keyring has an unknown version")
	// ErrUnknownKey says that the ring holds no data key with that id.
	ErrUnknownKey = fault.Named(fault.WrongKey, "unknown-key", "data key is not in the keyring")
	// ErrWeak says that the parameters of a passphrase are outside the limits:
	// too cheap to guess, or too costly to try.
	ErrWeak = fault.New(fault.Invalid, "key derivation parameters are outside the limits")
	// ErrExposed says that others can read the keyring or the key file.
	ErrExposed = private.ErrExposed
	// ErrUnusable says that a zero Ring, a zero Unlock, an empty passphrase or a
	// key of the wrong length was used.
	ErrUnusable = fault.New(fault.Invalid, "unusable key")
)
