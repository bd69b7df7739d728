package cloudagent

import (
	"fmt"

	"github.com/stet-dev/stet/fault"
	"github.com/stet-dev/stet/kv"
)

// Errors that callers branch on with errors.Is.
var (
	// ErrNotFound says that there is no such agent, or that it has no such blob or
	// snapshot.
	ErrNotFound = fault.Named(fault.NotFound, "agent-not-found", "not found")
	// ErrExists says that an agent with that id already exists.
	ErrExists = fault.Named(fault.Exists, "agent-exists", "already exists")
	// ErrInvalid says that an argument is invalid. Nothing was changed.
	ErrInvalid = fault.Named(fault.Invalid, "invalid-agent", "invalid")
	// ErrInvalidOffset says that a text is not an offset, or not one of this log where
	// that is required. It wraps ErrInvalid.
	ErrInvalidOffset = fault.Under(ErrInvalid, "invalid-offset", "invalid offset")
	// ErrArchived says that the agent is archived and takes no more events.
	ErrArchived = fault.Named(fault.Conflict, "archived", "agent is archived")
	// ErrExpired says that the agent has expired and takes no more events.
	ErrExpired = fault.Named(fault.Conflict, "expired", "agent has expired")
	// ErrCopy says that the agent is a copy of one that runs elsewhere, which only its
	// origin changes.
	ErrCopy = fault.Named(fault.ReadOnly, "agent-copy", "agent is a copy")
	// ErrConflict says that the agent is not in the state or status that the caller
	// named. Nothing was changed.
	ErrConflict = fault.Named(fault.Stale, "agent-changed", "agent has changed")
	// ErrDataLoss says that an acknowledged event or state can no longer be read.
	ErrDataLoss = fault.Named(fault.Damaged, "agent-data-loss", "data loss")
	// ErrNewerFormat says that a row was written by a newer release.
	ErrNewerFormat = kv.ErrNewerFormat
	// ErrTooLarge says that an update does not fit into a row.
	ErrTooLarge = fault.Named(fault.Exhausted, "update-too-large", "update too large")
)

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
}

func dataLoss(agent, format string, args ...any) error {
	return fmt.Errorf("%w: agent %s: %s", ErrDataLoss, agent, fmt.Sprintf(format, args...))
}
