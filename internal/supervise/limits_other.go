//go:build !linux

package supervise

// CanLimit reports whether the system can limit what a command takes.
const CanLimit = false

func become(Limits, string, []string) error { return ErrNoLimits }
