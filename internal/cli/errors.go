package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"slices"

	"github.com/spf13/cobra"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/client"
	"github.com/stet-dev/stet/keyring"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/sqlite"
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

var errInterrupted = errors.New("interrupted")

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

// Code returns the exit code and the machine-readable name of an error.
func Code(err error) (int, string) {
	var known *codedError
	var network *net.OpError
	switch {
	case err == nil:
		return ExitOK, "ok"
	case errors.As(err, &known):
		return known.code, codeNames[known.code]
	case errors.Is(err, blob.ErrCorrupt), errors.Is(err, kv.ErrCorrupt), errors.Is(err, sqlite.ErrDamaged):
		return ExitDamage, "damage"
	case errors.Is(err, sqlite.ErrNoStore), errors.Is(err, blob.ErrNotFound), errors.Is(err, kv.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return ExitNotFound, "not_found"
	case errors.Is(err, kv.ErrConflict):
		return ExitConflict, "conflict"
	case errors.Is(err, kv.ErrBusy):
		return ExitBusy, "busy"
	case errors.Is(err, blob.ErrInvalidID):
		return ExitUsage, "invalid_argument"
	case errors.Is(err, blob.ErrWrongKey), errors.Is(err, keyring.ErrWrongKey):
		return ExitError, "wrong_key"
	case errors.Is(err, sqlite.ErrNewerFormat):
		return ExitError, "newer_format"
	case errors.Is(err, blob.ErrFull):
		return ExitError, "full"
	case errors.Is(err, blob.ErrReadOnly):
		return ExitError, "read_only"
	case errors.Is(err, client.ErrUnreachable), errors.As(err, &network):
		return ExitUnreachable, "unreachable"
	}
	return ExitError, "error"
}

var codeNames = map[int]string{
	ExitError: "error", ExitUsage: "invalid_argument", ExitNotFound: "not_found", ExitConflict: "conflict",
	ExitRolledBack: "rolled_back", ExitDamage: "damage", ExitBusy: "busy", ExitUnreachable: "unreachable",
	ExitInterrupted: "interrupted",
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

// badFlag explains an error in the flags. Parsing stops there, so a later --json must
// be looked up.
func (a *app) badFlag(cmd *cobra.Command, err error) error {
	end := slices.Index(a.args, "--")
	if end < 0 {
		end = len(a.args)
	}
	a.json = a.json || slices.Contains(a.args[:end], "--json")
	return usage(fmt.Errorf("%w; see '%s --help'", err, cmd.CommandPath()))
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
