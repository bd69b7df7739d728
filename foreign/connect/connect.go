// Package connect makes the changes that let an agent call stet, and reverts them. It
// promises that everything else in a file of the agent stays unchanged, byte for
// byte, that applying a change twice does nothing, and that a file that stet does not
// understand or may not write is left alone with an error.
//
//	changes, err := adapter.Connection(host, foreign.Connect{Command: []string{stet, "hook", adapter.Name()}})
//	for _, change := range changes {
//		result, err := connect.Apply(change)
//	}
//
// Adapters decide which changes an agent needs.
package connect

import (
	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/internal/settings"
)

// Result is the effect of a change on a file.
type Result = settings.Result

// Plan returns what Apply would do. It changes nothing.
func Plan(c foreign.Change) (Result, error) { return settings.Plan(c) }

// PlanRevert returns what Revert would do. It changes nothing.
func PlanRevert(c foreign.Change) (Result, error) { return settings.PlanRevert(c) }

// Applied reports whether a change has been made in its file.
func Applied(c foreign.Change) (bool, error) { return settings.Applied(c) }

// Apply makes a change and keeps a copy of the original beside the file. If the file
// cannot be changed, the error is foreign.ErrSettings and nothing was changed.
func Apply(c foreign.Change) (Result, error) { return settings.Apply(c) }

// Revert reverts a change. The file is then as it was before, except for what others
// changed since.
func Revert(c foreign.Change) (Result, error) { return settings.Revert(c) }
