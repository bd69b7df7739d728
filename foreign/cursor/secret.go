package cursor

import "fmt"

// redacted is the printed form of a Secret.
const redacted = "[redacted]"

// Secret is a string that is hidden when it is printed or encoded as JSON or text.
type Secret struct{ value string }

// NewSecret hides a string.
func NewSecret(value string) Secret { return Secret{value} }

// Reveal returns the secret. The caller must protect it.
func (s Secret) Reveal() string { return s.value }

// IsZero reports whether there is no secret.
func (s Secret) IsZero() bool { return s.value == "" }

// String returns a placeholder.
func (Secret) String() string { return redacted }

// GoString returns a placeholder.
func (Secret) GoString() string { return redacted }

// Format prints a placeholder for every verb.
func (Secret) Format(f fmt.State, _ rune) { fmt.Fprint(f, redacted) }

// MarshalText returns a placeholder, also for JSON.
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }
