package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"

	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/fault"
)

// Exit codes, stable from the first release.
const (
	ExitOK          = 0
	ExitError       = 1
	ExitUsage       = 2 // also: a confirmation is needed without a terminal
	ExitNotFound    = 3
	ExitConflict    = 4 // nothing changed
	ExitRolledBack  = 5
	ExitDamage      = 6
	ExitBusy        = 7
	ExitUnreachable = 8
	ExitInterrupted = 130
)

var errInterrupted = fault.New(fault.Canceled, "interrupted")

// codedError is an error with an exit code.
type codedError struct {
	code int
	err  error
}

func (e *codedError) Error() string { return e.err.Error() }
func (e *codedError) Unwrap() error { return e.err }

// coded returns an error with an exit code.
func coded(code int, format string, args ...any) error {
	return &codedError{code: code, err: fmt.Errorf(format, args...)}
}

func usage(err error) error { return &codedError{code: ExitUsage, err: err} }

// silentExit ends with a code and prints nothing more: the report is printed already.
type silentExit struct{ code int }

func (e silentExit) Error() string { return fmt.Sprintf("exit %d", e.code) }

// exit is an exit code with its name in JSON.
type exit struct {
	code int
	name string
}

// exits says how the errors of a class end a command. docs/format/cli.md has the same
// table.
var exits = map[fault.Class]exit{
	fault.Unknown:     {ExitError, "error"},
	fault.NotFound:    {ExitNotFound, "not_found"},
	fault.Invalid:     {ExitUsage, "invalid_argument"},
	fault.Exists:      {ExitConflict, "conflict"},
	fault.Stale:       {ExitConflict, "conflict"},
	fault.Conflict:    {ExitConflict, "conflict"},
	fault.Unsupported: {ExitError, "unsupported"},
	fault.Busy:        {ExitBusy, "busy"},
	fault.Closed:      {ExitError, "closed"},
	fault.Canceled:    {ExitError, "canceled"}, // an interrupt has a code of its own
	fault.Unreachable: {ExitUnreachable, "unreachable"},
	fault.Denied:      {ExitError, "denied"},
	fault.Exhausted:   {ExitError, "exhausted"},
	fault.ReadOnly:    {ExitError, "read_only"},
	fault.WrongKey:    {ExitError, "wrong_key"},
	fault.NewerFormat: {ExitError, "newer_format"},
	fault.RolledBack:  {ExitRolledBack, "rolled_back"},
	fault.Uncertain:   {ExitError, "uncertain"},
	fault.Damaged:     {ExitDamage, "damage"},
}

// exceptions are reasons that end a command in another way than their class.
var exceptions = map[string]exit{
	"full":               {ExitError, "full"},
	"rewind-interrupted": {ExitError, "error"}, // the name that it had before there were classes
}

// codeNames are the names of errors that were given an exit code where they arose.
var codeNames = map[int]string{
	ExitError: "error", ExitUsage: "invalid_argument", ExitNotFound: "not_found", ExitConflict: "conflict",
	ExitRolledBack: "rolled_back", ExitDamage: "damage", ExitBusy: "busy", ExitUnreachable: "unreachable",
	ExitInterrupted: "interrupted",
}

// Code returns the exit code and the machine-readable name of an error.
func Code(err error) (int, string) {
	var known *codedError
	var network *net.OpError
	class := fault.Of(err)
	switch {
	case err == nil:
		return ExitOK, "ok"
	case errors.As(err, &known):
		return known.code, codeNames[known.code]
	case class == fault.Unknown && errors.As(err, &network): // also an address that cannot be listened on
		class = fault.Unreachable
	}
	found := exits[class]
	if reasons := fault.Reasons(err); len(reasons) > 0 && class == fault.Declared(err) {
		if other, ok := exceptions[reasons[0]]; ok {
			found = other
		}
	}
	return found.code, found.name
}

// fail reports an error to people or machines and returns the exit code.
func (a *app) fail(err error) int {
	var silent silentExit
	if errors.As(err, &silent) {
		return silent.code
	}
	code, name := Code(err)
	if a.json {
		line, _ := json.Marshal(map[string]string{"schema": "stet.error.v1", "code": name, "message": err.Error()})
		fmt.Fprintf(a.err, "%s\n", line)
	} else {
		fmt.Fprintf(a.err, "stet: %s\n", printableLines(err.Error()))
	}
	return code
}

// interrupted describes what an interrupt left behind, if known.
func interrupted(err error) error {
	switch {
	case errors.Is(err, checkpoint.ErrInterrupted):
		err = fmt.Errorf("%w: %w", errInterrupted, err)
	case errors.Is(err, checkpoint.ErrRolledBack):
		err = fmt.Errorf("%w; nothing was changed", errInterrupted)
	default:
		err = errInterrupted
	}
	return &codedError{code: ExitInterrupted, err: err}
}

func isCancelled(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, errInterrupted)
}
