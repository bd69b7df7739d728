package wire

import (
	"fmt"

	"github.com/stet-dev/stet/fault"
)

// Kinds of errors of arguments, for those that no package below the server checks.
var (
	// ErrMissing says that a call lacks an argument that it needs.
	ErrMissing = fault.Named(fault.Invalid, "missing-argument", "missing argument")
	// ErrArgument says that an argument has a value that the call does not accept, at all
	// or beside the others.
	ErrArgument = fault.Named(fault.Invalid, "invalid-argument", "invalid argument")
)

// Error returns an error of a kind, in words for the caller that need not repeat those of
// the kind.
func Error(kind error, format string, args ...any) error {
	return &worded{kind: kind, text: fmt.Sprintf(format, args...)}
}

type worded struct {
	kind error
	text string
}

func (e *worded) Error() string { return e.text }

func (e *worded) Unwrap() error { return e.kind }
