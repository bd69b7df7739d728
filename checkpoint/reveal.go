package checkpoint

import (
	"context"

	"github.com/stet-dev/stet/workspace"
)

// Ignore rules decide what is newly captured, never what may be restored. If a tree
// has a path that a rule now ignores, the path is scanned anyway: the plan compares
// contents, and the safety checkpoint stores what will be replaced.

// reveal captures, in addition to what a scan captured, paths that a rule hides.
func (w *Workspace) reveal(ctx context.Context, st *state, c *capture, paths []string) (*capture, error) {
	opts := w.s.opts.Scan
	opts.Touched, opts.Reveal, opts.Progress, opts.Force = paths, true, nil, w.s.opts.Force
	res, err := workspace.ScanPaths(ctx, w.s.blobs, w.path, c.index, paths, &opts)
	if err != nil {
		return nil, err
	}
	out, err := w.finish(ctx, st, c.index, res, mergeSkipped(c.skipped, res, paths))
	if err != nil {
		return nil, err
	}
	out.hinted, out.stats, out.notKept = c.hinted, c.stats, c.notKept
	out.revealed = make(map[string]bool, len(paths)+len(c.revealed))
	for path := range c.revealed {
		out.revealed[path] = true
	}
	for _, path := range paths {
		out.revealed[path] = true
	}
	return out, nil
}

// hides returns why the capture does not cover a path that its tree lacks. A path
// that was scanned despite a rule is missing if it is not in the tree.
func (c *capture) hides(now blind, path string) (workspace.Skipped, bool) {
	k, hidden := now.at(path)
	if hidden && k.Reason.ByRule() && k.Path != path && c.revealed[path] {
		return workspace.Skipped{}, false
	}
	return k, hidden
}

// keepKnown reveals paths that the latest checkpoint has and a rule hides, unless they
// are excluded by the settings. A scan based on the tree of that checkpoint keeps them by
// itself; one based on an older index, or a newer one of a plan, does not.
func (w *Workspace) keepKnown(ctx context.Context, st *state, base *workspace.Index, c *capture) (*capture, error) {
	if st.tip == nil || base == nil || base.Tree() == st.tip.Tree {
		return c, nil
	}
	now := newBlind(c.skipped)
	var lost []string
	for _, change := range c.changed {
		if change.After != nil || isDir(change.Before) {
			continue
		}
		if k, ok := c.hides(now, change.Path); ok && k.Reason.ByRule() && k.Reason != workspace.ReasonExcluded {
			lost = append(lost, change.Path)
		}
	}
	if len(lost) == 0 {
		return c, nil
	}
	return w.reveal(ctx, st, c, lost)
}

// decideFiles decides about the paths that look finds, and completes the plan. If a
// rule hides affected paths, it reveals them first and looks again. It returns the
// captured state that the plan is based on.
func (w *Workspace) decideFiles(ctx context.Context, st *state, p *Plan, present *capture, look func(*capture) ([]PathState, Rules, error)) (*capture, error) {
	states, rules, err := look(present)
	if err != nil {
		return nil, err
	}
	if paths := hidden(states, &rules); len(paths) > 0 {
		if present, err = w.reveal(ctx, st, present, paths); err != nil {
			return nil, err
		}
		if states, rules, err = look(present); err != nil {
			return nil, err
		}
	}
	p.present, p.NotCaptured = present.tree, present.skipped
	return present, w.chooseActions(ctx, p, states, rules)
}

// hidden lists the paths that a rule hides and that the plan may change. Directories
// are not included: they appear with their content, and scanning one would scan
// everything in it.
func hidden(states []PathState, rules *Rules) []string {
	var paths []string
	for i := range states {
		s := &states[i]
		if !s.NotCaptured.ByRule() || s.Target == nil || isDir(s.Target) || s.Excluded {
			continue
		}
		if rules.Exact {
			paths = append(paths, s.Path)
			continue
		}
		for _, w := range s.Writes {
			if rules.Mine(s.Path, w.Writer) || rules.Perhaps != nil && rules.Perhaps(w.Writer) {
				paths = append(paths, s.Path)
				break
			}
		}
	}
	return paths
}
