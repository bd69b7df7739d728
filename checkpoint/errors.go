package checkpoint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stet-dev/stet/fault"
	"github.com/stet-dev/stet/internal/swapdir"
	"github.com/stet-dev/stet/kv"
)

// Errors that callers branch on with errors.Is.
var (
	// ErrNotFound says that no checkpoint, pin or operation has that name.
	ErrNotFound = fault.Named(fault.NotFound, "checkpoint-not-found", "checkpoint not found")
	// ErrNoPath says that a requested path is neither in the target of a rewind nor in
	// the workspace.
	ErrNoPath = fault.Named(fault.NotFound, "path-not-found", "path not found")
	// ErrAmbiguous says that a prefix matches several checkpoints.
	ErrAmbiguous = fault.Named(fault.Invalid, "ambiguous-reference", "ambiguous checkpoint")
	// ErrBadRef says that a reference cannot be parsed.
	ErrBadRef = fault.Named(fault.Invalid, "bad-reference", "malformed checkpoint reference")
	// ErrBadRecord says that a stored row or list cannot be read.
	ErrBadRecord = fault.Under(kv.ErrCorrupt, "bad-checkpoint", "checkpoint record is malformed")
	// ErrNewerFormat says that a row was written by a newer release.
	ErrNewerFormat = fault.Under(kv.ErrNewerFormat, "newer-checkpoint", "checkpoint record has a newer format")
	// ErrDisabled says that capture or rewind is switched off.
	ErrDisabled = fault.Named(fault.Unsupported, "checkpoints-disabled", "checkpoints are switched off")
	// ErrOtherWorkspace says that a checkpoint belongs to another directory.
	ErrOtherWorkspace = fault.Named(fault.Conflict, "other-workspace", "checkpoint belongs to another workspace")
	// ErrStalePlan says that the workspace, or the target, is no longer what a
	// plan was made for. Nothing was changed.
	ErrStalePlan = fault.Named(fault.Conflict, "stale-plan", "plan is stale")
	// ErrConflict says that files need a choice. Nothing was changed.
	ErrConflict = fault.Named(fault.Conflict, "files-changed", "these files changed after the checkpoint")
	// ErrChanged says that a file changed while it was being rewound. Everything
	// was put back as it was.
	ErrChanged = swapdir.ErrChanged
	// ErrOtherFileSystem says that a path lies on another file system than the
	// workspace, where a rewind cannot exchange files all at once. Everything was put
	// back.
	ErrOtherFileSystem = swapdir.ErrOtherFileSystem
	// ErrSameName says that several names of the target are one name on the file system
	// of the workspace. Nothing was changed.
	ErrSameName = fault.Named(fault.Unsupported, "same-name", "names collide on this file system")
	// ErrTimeout says that the file system was too slow. Everything was put back.
	ErrTimeout = swapdir.ErrTimeout
	// ErrRolledBack says that a rewind failed and was rolled back.
	ErrRolledBack = fault.Named(fault.RolledBack, "rolled-back", "rewind failed and was rolled back")
	// ErrInterrupted says that a rewind stopped halfway: rolling it back failed too, or
	// the store cannot tell whether it was committed. Reopen the store, and the next
	// Open of the workspace finishes the rewind or rolls it back.
	ErrInterrupted = fault.Named(fault.Uncertain, "rewind-interrupted", "rewind interrupted: open the workspace again")
	// ErrBusy says that another process is working on the workspace.
	ErrBusy = fault.Named(fault.Busy, "workspace-busy", "workspace is busy")
	// ErrNothing says that there is nothing to undo or to redo.
	ErrNothing = fault.Named(fault.NotFound, "nothing-to-undo", "nothing to undo or redo")
	// ErrNoProcess says that a process is not running, or cannot be identified here.
	ErrNoProcess = fault.Named(fault.NotFound, "no-process", "no such process")
	// ErrNoConversations says that a conversation should be rewound but
	// Options.Conversations is not set.
	ErrNoConversations = fault.Named(fault.Conflict, "no-conversations", "conversations are not connected")
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
	return fmt.Sprintf("%v: %q matches %s", ErrAmbiguous, e.Ref, strings.Join(e.Candidates, ", "))
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
	named := make([]string, len(paths))
	for i, path := range paths {
		named[i] = e.named(path)
	}
	return fmt.Sprintf("%v (%s%s)", ErrConflict, strings.Join(named, ", "), more)
}

// ResolvedBy reports whether a choice for all paths resolves the conflict.
func (e *ConflictError) ResolvedBy(c Choice) bool {
	for _, path := range e.Paths {
		if c != KeepMine && (e.Plan == nil || !e.Plan.resolves(path, c)) {
			return false
		}
	}
	return true
}

// resolves reports whether a choice resolves the conflict at a path.
func (p *Plan) resolves(path string, c Choice) bool {
	i := slices.IndexFunc(p.Actions, func(a Action) bool { return a.Path == path })
	if i < 0 || p.Actions[i].Kind != Conflict {
		return false // it cannot be captured
	}
	switch a := &p.Actions[i]; c {
	case Theirs:
		return p.request.OnlyTurn == 0 && !a.stuck
	case Merge:
		return a.NoMerge == ""
	case MergeMarkers:
		return a.NoMerge == "" || a.NoMerge == sameLines
	}
	return false
}

// named returns a path, and why it cannot be captured if that is the conflict.
func (e *ConflictError) named(path string) string {
	if e.Plan != nil {
		if k, ok := newBlind(e.Plan.NotCaptured).at(path); ok && !k.Reason.ByRule() {
			return fmt.Sprintf("%s: not captured: %s", path, k.Reason)
		}
	}
	return path
}

// Unwrap returns ErrConflict.
func (e *ConflictError) Unwrap() error { return ErrConflict }
