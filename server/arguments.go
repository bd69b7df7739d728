package server

import (
	"github.com/stet-dev/stet/search"
	"github.com/stet-dev/stet/server/internal/wire"
)

// invalid says that an argument has a value that its call does not accept.
func invalid(format string, args ...any) error { return wire.Error(wire.ErrArgument, format, args...) }

// missing says that a call lacks an argument.
func missing(format string, args ...any) error { return wire.Error(wire.ErrMissing, format, args...) }

// errCursor says that a cursor is not one of the list that it is for.
func errCursor() error {
	return wire.Error(search.ErrInvalidCursor, "invalid cursor for this list; begin again without one")
}

// errNoWorkspace says that a call does not name a workspace as it must.
func errNoWorkspace(name string) error {
	kind := wire.ErrArgument
	if name == "" {
		kind = wire.ErrMissing
	}
	return wire.Error(kind, "name the workspace by its absolute path or its id")
}
