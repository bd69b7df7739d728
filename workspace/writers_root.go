//go:build portable || !linux

package workspace

// writers is unknown on this system.
func (f *openedFile) writers() writing { return notKnown }

// listWritten is not available on this system.
func listWritten() map[uint64]struct{} { return nil }
