package checkpoint

import (
	"fmt"
	"slices"

	"github.com/stet-dev/stet/workspace"
)

// checkRequest rejects paths that no tree can hold.
func checkRequest(req *RewindRequest) error {
	switch req.Scope {
	case "", FilesOnly, ConversationOnly, Both:
	default:
		return fmt.Errorf("%w: scope %q", ErrBadRef, req.Scope)
	}
	if req.Exact && (req.OnlyTurn != 0 || req.Exchange != nil || req.Choice != "" && req.Choice != Theirs || len(req.Choices) > 0) {
		return fmt.Errorf("%w: exact leaves no choice, and goes to a checkpoint", ErrBadRef)
	}
	if req.OnlyTurn != 0 && (req.Scope == ConversationOnly || req.Scope == Both) {
		return fmt.Errorf("%w: a single turn is taken out of the files, not out of the conversation", ErrBadRef)
	}
	if l := req.Lines; l != nil {
		if req.Exact || req.OnlyTurn != 0 || req.Exchange != nil || len(req.Paths) > 0 || req.Scope == ConversationOnly || req.Scope == Both || len(l.Ranges) == 0 {
			return fmt.Errorf("%w: lines are put back from a checkpoint, and nothing else with them", ErrBadRef)
		}
		if err := workspace.CheckPath(l.Path); err != nil {
			return err
		}
	}
	req.Paths = slices.Clone(req.Paths)
	for _, p := range req.Paths {
		if err := workspace.CheckPath(p); err != nil {
			return err
		}
	}
	for _, c := range append([]Choice{req.Choice}, choices(req.Choices)...) {
		switch c {
		case "", KeepMine, Theirs, Merge, MergeMarkers:
		default:
			return fmt.Errorf("%w: choice %q", ErrBadRef, c)
		}
	}
	return nil
}

func choices(m map[string]Choice) []Choice {
	var out []Choice
	for _, c := range m {
		out = append(out, c)
	}
	return out
}
