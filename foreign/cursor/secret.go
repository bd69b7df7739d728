package cursor

import "fmt"

// redacted is what a Secret looks like to everyone who prints it.
const redacted = "[redacted]"

// Secret is a string that does not show itself: not when printed in any way,
// not when encoded as JSON or text.
type Secret struct{ value string }

// Reveal returns the secret. Whoever calls it takes care of where it goes.
func (s Secret) Reveal() string { return s.value }

// IsZero reports whether there is no secret.
func (s Secret) IsZero() bool { return s.value == "" }

// String returns a placeholder.
func (Secret) String() string { return redacted }

// GoString returns a placeholder.
func (Secret) GoString() string { return redacted }

// Format prints a placeholder for every verb.
func (Secret) Format(f fmt.State, _ rune) { fmt.Fprint(f, redacted) }

// MarshalText encodes a placeholder, also in JSON.
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }
