package cloudagent

import (
	"errors"
	"fmt"

	"github.com/stet-dev/stet/kv"
)

// Errors that callers branch on with errors.Is.
var (
	// ErrNotFound says that there is no such agent, or that it has no such blob or
	// snapshot.
	ErrNotFound = errors.New("not found")
	// ErrExists says that there is an agent of that id already.
	ErrExists = errors.New("already exists")
	// ErrInvalid says that an argument is not what it must be. Nothing was changed.
	ErrInvalid = errors.New("invalid")
	// ErrInvalidOffset says that a text is no offset, or none of this log where one
	// is needed. It wraps ErrInvalid.
	ErrInvalidOffset = fmt.Errorf("%w offset", ErrInvalid)
	// ErrArchived says that the agent is archived and takes no more events.
	ErrArchived = errors.New("agent is archived")
	// ErrConflict says that the agent is not in the state or status that the caller
	// named. Nothing was changed.
	ErrConflict = errors.New("agent has changed")
	// ErrDataLoss says that an event or a state that was acknowledged cannot be
	// read any more.
	ErrDataLoss = errors.New("data loss")
	// ErrNewerFormat says that a row was written by a newer release.
	ErrNewerFormat = kv.ErrNewerFormat
	// ErrTooLarge says that an update does not fit into a row.
	ErrTooLarge = errors.New("update too large")
)

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
}

func dataLoss(agent, format string, args ...any) error {
	return fmt.Errorf("%w: agent %s: %s", ErrDataLoss, agent, fmt.Sprintf(format, args...))
}
