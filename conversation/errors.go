package conversation

import (
	"errors"
	"fmt"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation/graph"
	"github.com/stet-dev/stet/fault"
	"github.com/stet-dev/stet/kv"
)

// Errors that callers branch on with errors.Is.
var (
	// ErrNotFound says that there is no such conversation, save, message or pin.
	ErrNotFound = fault.Named(fault.NotFound, "conversation-not-found", "not found")
	// ErrExists says that a conversation or pin of that name already exists.
	ErrExists = fault.Named(fault.Exists, "conversation-exists", "already exists")
	// ErrStale says that another process has since opened the conversation for writing.
	// Nothing was saved; open it again.
	ErrStale = fault.Named(fault.Stale, "stale-writer", "stale writer")
	// ErrReadOnly says that the handle was not opened for writing.
	ErrReadOnly = fault.Named(fault.ReadOnly, "conversation-read-only", "conversation is open for reading only")
	// ErrInvalid says that an argument or stored bytes are not valid.
	ErrInvalid = fault.Named(fault.Invalid, "invalid-conversation", "invalid")
	// ErrTooDeep says that more than 32 subagents are nested in each other, by value or
	// by reference.
	ErrTooDeep = graph.ErrTooDeep
	// ErrPartial says that a state holds only part of its turns and therefore cannot be
	// saved.
	ErrPartial = fault.Named(fault.Invalid, "partial-state", "state is partial")
	// ErrDataLoss says that a state cannot be reassembled. The error is a
	// *HydrationError.
	ErrDataLoss = fault.Named(fault.Damaged, "conversation-data-loss", "data loss")
	// ErrNewerFormat says that a row was written by a newer release.
	ErrNewerFormat = kv.ErrNewerFormat
)

// HydrationError names the source from which a state could not be read. It wraps
// ErrDataLoss and its cause.
type HydrationError struct {
	// Conversation is the conversation's id, if there is one.
	Conversation string
	// Source is what failed, such as "pointer", "hex", "inline" or a field path.
	Source string
	Err    error
}

func (e *HydrationError) Error() string {
	if e.Conversation == "" {
		return fmt.Sprintf("hydrate from %s: %v: %v", e.Source, ErrDataLoss, e.Err)
	}
	return fmt.Sprintf("hydrate %s from %s: %v: %v", e.Conversation, e.Source, ErrDataLoss, e.Err)
}

// Unwrap returns ErrDataLoss and the cause.
func (e *HydrationError) Unwrap() []error { return []error{ErrDataLoss, e.Err} }

// Damaged reports whether an error concerns the stored data of one conversation, such
// as a changed row, so that others can still be read.
func Damaged(err error) bool {
	return kv.Damaged(err) || errors.Is(err, blob.ErrCorrupt) || errors.Is(err, ErrInvalid) || errors.Is(err, ErrDataLoss)
}

// Unreadable is a conversation that cannot be read, with the cause.
type Unreadable struct {
	ID  string
	Err error
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
}
