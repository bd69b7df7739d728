package fault

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"syscall"
)

// system says what errors of the standard library mean; the first that fits counts.
var system = []struct {
	err   error
	class Class
}{
	{context.Canceled, Canceled},
	{context.DeadlineExceeded, Canceled},
	{syscall.ENOSPC, Exhausted},
	{syscall.EDQUOT, Exhausted},
	{syscall.EROFS, ReadOnly},
	{syscall.ENOTDIR, Invalid}, // the path leads through a file
	{fs.ErrPermission, Denied},
	{fs.ErrNotExist, NotFound},
	{fs.ErrExist, Exists},
	{fs.ErrClosed, Closed},
	{errors.ErrUnsupported, Unsupported},
}

// ofSystem returns the class of one error of the standard library.
func ofSystem(err error) Class {
	switch e := err.(type) {
	case *net.DNSError:
		return Unreachable
	case *net.OpError:
		if e.Op == "listen" { // an address of this machine
			return Unknown
		}
		return Unreachable
	}
	for _, s := range system {
		if matches(err, s.err) {
			return s.class
		}
	}
	return Unknown
}

// matches is errors.Is for one error without those that it wraps.
func matches(err, target error) bool {
	if err == target {
		return true
	}
	e, ok := err.(interface{ Is(error) bool })
	return ok && e.Is(target)
}
