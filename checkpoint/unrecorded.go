package checkpoint

import (
	"cmp"
	"context"
	"slices"

	"github.com/stet-dev/stet/workspace"
)

// A rewind to a checkpoint cannot do anything about what is there now, is not captured,
// and was not there at the checkpoint: nothing of it was ever stored, so nothing would
// bring it back. But it differs from the checkpoint, so it is named. These actions are
// not part of a plan's token: files that are not captured come and go, and a plan does
// the same with and without them.

// nameUnrecorded adds to the plan of an exact rewind what the present does not capture
// and the target did not have. Other rewinds are about what somebody changed, and nobody
// knows who made these.
func (w *Workspace) nameUnrecorded(ctx context.Context, p *Plan, present *capture) error {
	if !p.request.Exact {
		return nil
	}
	_, err := w.nameNew(ctx, p, present.skipped, func(k, then workspace.Skipped) (Why, string) {
		if then.Path != "" {
			return "", "" // for all that is known, it was there then
		}
		return whyNotCaptured(k.Reason), "not captured: " + string(k.Reason)
	})
	return err
}

// nameUncovered adds to the plan what its changes of ignore files uncovered: everybody
// sees now that the workspace differs from the target by it.
func (r *rewinding) nameUncovered(ctx context.Context, came []workspace.Change) (err error) {
	if !r.job.compares {
		return nil
	}
	now := newBlind(r.job.present.skipped)
	var uncovered []workspace.Skipped
	seen := make(map[string]bool)
	for _, c := range came {
		if c.Before != nil || c.After == nil {
			continue
		}
		if k, ok := now.at(c.Path); ok && k.Reason.ByRule() && !seen[k.Path] {
			seen[k.Path] = true
			uncovered = append(uncovered, k)
		}
	}
	r.uncovered, err = r.w.nameNew(ctx, r.plan, uncovered, func(k, then workspace.Skipped) (Why, string) {
		if then.Path != "" {
			return whyNotCapturedThen(then.Reason, then.Path != k.Path)
		}
		return whyNotCaptured(k.Reason), string(k.Reason) + " until this rewind, and never captured"
	})
	return err
}

// nameNew adds those of a list of uncaptured paths that the target does not have. The
// function says why they are left, also given why the target did not capture them, or
// returns "" for those that need no mention. The result is what was added.
func (w *Workspace) nameNew(ctx context.Context, p *Plan, list []workspace.Skipped, why func(k, then workspace.Skipped) (Why, string)) (added []string, err error) {
	if len(list) == 0 || p.Target.partial() {
		return nil, nil
	}
	skipped, err := w.s.NotCaptured(ctx, p.Target)
	if err != nil {
		return nil, err
	}
	then := newBlind(skipped)
	listed := make(map[string]bool, len(p.Actions))
	for i := range p.Actions {
		listed[p.Actions[i].Path] = true
	}
	for _, k := range list {
		if listed[k.Path] || !p.request.asks(k.Path) {
			continue
		}
		at, err := w.entriesAt(ctx, k.Path, p.Target.Tree)
		if err != nil {
			return nil, err
		}
		if at[0] != nil {
			continue // compared like anything that the target has
		}
		before, _ := then.at(k.Path)
		if because, reason := why(k, before); because != "" {
			p.Actions = append(p.Actions, Action{Path: k.Path, Kind: Keep, Why: because, Reason: reason})
			added = append(added, k.Path)
		}
	}
	slices.SortFunc(p.Actions, func(a, b Action) int { return cmp.Compare(a.Path, b.Path) })
	return added, nil
}
