// Package connect makes the changes by which an agent calls stet, and takes them back. It
// promises that whatever else is in a file of the agent stays as it is, byte for byte,
// that a second time changes nothing, and that a file which stet does not understand or
// may not write is refused and left alone.
//
//	changes, err := adapter.Connection(host, foreign.Connect{Command: []string{stet, "hook", adapter.Name()}})
//	for _, change := range changes {
//		result, err := connect.Apply(change)
//	}
//
// What has to be in which file is left to adapters.
package connect

import (
	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/internal/settings"
)

// Result is what a change did, or would do, to a file.
type Result = settings.Result

// Plan returns what Apply would do. It changes nothing.
func Plan(c foreign.Change) (Result, error) { return settings.Plan(c) }

// PlanRevert returns what Revert would do. It changes nothing.
func PlanRevert(c foreign.Change) (Result, error) { return settings.PlanRevert(c) }

// Applied reports whether a change is in its file.
func Applied(c foreign.Change) (bool, error) { return settings.Applied(c) }

// Apply makes a change and keeps the file as it was beside it. The error is
// foreign.ErrSettings, and nothing was changed, if the file cannot be changed.
func Apply(c foreign.Change) (Result, error) { return settings.Apply(c) }

// Revert takes a change back. The file is then as it was before, except for what others
// changed since.
func Revert(c foreign.Change) (Result, error) { return settings.Revert(c) }
