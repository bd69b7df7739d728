package fault_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/stet-dev/stet/fault"
)

var (
	errAbsent  = fault.Named(fault.NotFound, "test-absent", "absent")
	errBroken  = fault.Named(fault.Damaged, "test-broken", "broken")
	errShorter = fault.Under(errBroken, "test-shorter", "shorter than it was")
	errPlain   = fault.New(fault.Busy, "in use")
)

// typed is an error of another package that knows its class.
type typed struct{ class fault.Class }

func (typed) Error() string             { return "typed" }
func (t typed) FaultClass() fault.Class { return t.class }
func wrapped(err error) error           { return fmt.Errorf("do it: %w", err) }
func openError(t *testing.T, at string) error {
	_, err := os.Open(filepath.Join(t.TempDir(), at))
	return err
}

func TestOf(t *testing.T) {
	for _, test := range []struct {
		name           string
		err            error
		want, declared fault.Class
	}{
		{"nil", nil, fault.Unknown, fault.Unknown},
		{"no class", errors.New("x"), fault.Unknown, fault.Unknown},
		{"sentinel", errAbsent, fault.NotFound, fault.NotFound},
		{"wrapped twice", wrapped(wrapped(errPlain)), fault.Busy, fault.Busy},
		{"kind of another", wrapped(errShorter), fault.Damaged, fault.Damaged},
		{"type with a class", wrapped(typed{fault.Stale}), fault.Stale, fault.Stale},
		{"damaged over not found", errors.Join(errAbsent, wrapped(errBroken)), fault.Damaged, fault.Damaged},
		{"damaged over not found, the other way round", fmt.Errorf("%w: %w", errBroken, errAbsent), fault.Damaged, fault.Damaged},
		{"tree below a chain", wrapped(errors.Join(errors.New("x"), errors.Join(errPlain, nil))), fault.Busy, fault.Busy},
		{"canceled", wrapped(context.Canceled), fault.Canceled, fault.Unknown},
		{"deadline", wrapped(context.DeadlineExceeded), fault.Canceled, fault.Unknown},
		{"no file", openError(t, "none"), fault.NotFound, fault.Unknown},
		{"permission", &fs.PathError{Op: "open", Path: "x", Err: syscall.EACCES}, fault.Denied, fault.Unknown},
		{"no space", &fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}, fault.Exhausted, fault.Unknown},
		{"quota", wrapped(syscall.EDQUOT), fault.Exhausted, fault.Unknown},
		{"read-only file system", wrapped(syscall.EROFS), fault.ReadOnly, fault.Unknown},
		{"through a file", wrapped(syscall.ENOTDIR), fault.Invalid, fault.Unknown},
		{"exists", wrapped(fs.ErrExist), fault.Exists, fault.Unknown},
		{"unsupported", wrapped(errors.ErrUnsupported), fault.Unsupported, fault.Unknown},
		{"dial", &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, fault.Unreachable, fault.Unknown},
		{"dial until the deadline", &net.OpError{Op: "dial", Err: context.DeadlineExceeded}, fault.Unreachable, fault.Unknown},
		{"name", wrapped(&net.DNSError{Name: "nowhere"}), fault.Unreachable, fault.Unknown},
		{"listen", &net.OpError{Op: "listen", Err: syscall.EADDRINUSE}, fault.Unknown, fault.Unknown},
		{"sentinel and system", fmt.Errorf("%w: %w", errAbsent, syscall.EACCES), fault.Denied, fault.NotFound},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := fault.Of(test.err); got != test.want {
				t.Errorf("Of: got %v, want %v", got, test.want)
			}
			if got := fault.Declared(test.err); got != test.declared {
				t.Errorf("Declared: got %v, want %v", got, test.declared)
			}
		})
	}
}

func TestIs(t *testing.T) {
	again := fault.Named(fault.Unknown, "test-absent", "")
	for _, test := range []struct {
		name        string
		err, target error
		want        bool
	}{
		{"itself", wrapped(errPlain), errPlain, true},
		{"same text", fault.New(fault.Busy, "in use"), errPlain, false},
		{"same reason", wrapped(again), errAbsent, true},
		{"other reason", errAbsent, errBroken, false},
		{"kind of another", errShorter, errBroken, true},
		{"kind of another, as itself", wrapped(errShorter), errShorter, true},
		{"the other is not of that kind", errBroken, errShorter, false},
		{"without a reason", errPlain, fault.New(fault.Busy, "x"), false},
	} {
		if got := errors.Is(test.err, test.target); got != test.want {
			t.Errorf("%s: got %v, want %v", test.name, got, test.want)
		}
	}
}

func TestReasons(t *testing.T) {
	for _, test := range []struct {
		err  error
		want []string
	}{
		{nil, []string{}},
		{errPlain, []string{}},
		{wrapped(errAbsent), []string{"test-absent"}},
		{fmt.Errorf("%w: %w", errAbsent, errAbsent), []string{"test-absent"}},
		{fmt.Errorf("%w: %w", errAbsent, errShorter), []string{"test-shorter", "test-broken", "test-absent"}},
	} {
		if got := fault.Reasons(test.err); !slices.Equal(got, test.want) {
			t.Errorf("%v: got %q, want %q", test.err, got, test.want)
		}
	}
}

func TestNamesOfClasses(t *testing.T) {
	seen := make(map[string]bool)
	for _, class := range fault.Classes() {
		name := class.String()
		if name == "" || name == "unknown" || seen[name] || fault.Parse(name) != class {
			t.Errorf("class %d has the name %q", class, name)
		}
		seen[name] = true
	}
	if last := fault.Classes()[len(fault.Classes())-1]; last != fault.Damaged {
		t.Errorf("the most serious class is %v", last)
	}
	if got := fault.Parse("no such class"); got != fault.Unknown {
		t.Errorf("got %v", got)
	}
	if got := fault.Class(200).String(); got != "unknown" {
		t.Errorf("got %q", got)
	}
}
