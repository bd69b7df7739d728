package checkpoint

import (
	"errors"
	"fmt"
	"strings"

	"github.com/stet-dev/stet/internal/swapdir"
	"github.com/stet-dev/stet/kv"
)

// Errors that callers branch on with errors.Is.
var (
	// ErrNotFound says that there is no checkpoint, pin or operation of that name.
	ErrNotFound = errors.New("checkpoint not found")
	// ErrAmbiguous says that a prefix fits several checkpoints.
	ErrAmbiguous = errors.New("ambiguous checkpoint")
	// ErrBadRef says that a reference cannot be read.
	ErrBadRef = errors.New("malformed checkpoint reference")
	// ErrBadRecord says that a stored row or list cannot be read.
	ErrBadRecord = fmt.Errorf("malformed checkpoint record: %w", kv.ErrCorrupt)
	// ErrNewerFormat says that a row was written by a newer release.
	ErrNewerFormat = fmt.Errorf("checkpoint record: %w", kv.ErrNewerFormat)
	// ErrDisabled says that capture or rewind is switched off.
	ErrDisabled = errors.New("checkpoints are switched off")
	// ErrOtherWorkspace says that a checkpoint is of another directory.
	ErrOtherWorkspace = errors.New("checkpoint of another workspace")
	// ErrStalePlan says that the workspace, or the target, is no longer what a
	// plan was made for. Nothing was changed.
	ErrStalePlan = errors.New("plan is stale")
	// ErrConflict says that files need a choice. Nothing was changed.
	ErrConflict = errors.New("files changed since and need a choice")
	// ErrChanged says that a file changed while it was being rewound. Everything
	// was put back as it was.
	ErrChanged = swapdir.ErrChanged
	// ErrOtherFileSystem says that a path lies on another file system than the
	// workspace, where a rewind cannot exchange files all at once. Everything was put
	// back.
	ErrOtherFileSystem = swapdir.ErrOtherFileSystem
	// ErrTimeout says that the file system was too slow. Everything was put back.
	ErrTimeout = swapdir.ErrTimeout
	// ErrRolledBack says that a rewind failed and was taken back.
	ErrRolledBack = errors.New("rewind failed and was rolled back")
	// ErrInterrupted says that a rewind ended in between: taking it back failed too, or
	// the store cannot tell whether it took place. The next Open of the workspace,
	// after one of the store, finishes it or takes it back.
	ErrInterrupted = errors.New("rewind interrupted: open the workspace again")
	// ErrBusy says that somebody else works on the workspace.
	ErrBusy = errors.New("workspace is busy")
	// ErrNothing says that there is nothing to undo or to redo.
	ErrNothing = errors.New("nothing to undo or redo")
	// ErrNoConversations says that a conversation should be moved and nobody who
	// can do it was given in Options.
	ErrNoConversations = errors.New("conversations are not connected")
)

// UnreadableError names a listed checkpoint that cannot be read. The list continues
// after it.
type UnreadableError struct {
	ID  string
	Err error
}

func (e *UnreadableError) Error() string { return fmt.Sprintf("checkpoint %s: %v", e.ID, e.Err) }

// Unwrap returns the cause.
func (e *UnreadableError) Unwrap() error { return e.Err }

// AmbiguousError lists the matches of a prefix. It wraps ErrAmbiguous.
type AmbiguousError struct {
	Ref        string
	Candidates []string
}

func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("%v: %q fits %s", ErrAmbiguous, e.Ref, strings.Join(e.Candidates, ", "))
}

// Unwrap returns ErrAmbiguous.
func (e *AmbiguousError) Unwrap() error { return ErrAmbiguous }

// ConflictError lists the paths that need a choice. It wraps ErrConflict.
type ConflictError struct {
	Paths []string
	Plan  *Plan // the plan that was not applied
}

func (e *ConflictError) Error() string {
	const shown = 5
	paths := e.Paths
	more := ""
	if len(paths) > shown {
		more = fmt.Sprintf(" and %d more", len(paths)-shown)
		paths = paths[:shown]
	}
	return fmt.Sprintf("%v (%s%s)", ErrConflict, strings.Join(paths, ", "), more)
}

// Unwrap returns ErrConflict.
func (e *ConflictError) Unwrap() error { return ErrConflict }
