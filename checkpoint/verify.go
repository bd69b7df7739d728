package checkpoint

import (
	"context"
	"fmt"
	"slices"

	"github.com/stet-dev/stet/workspace"
)

// recheck verifies, by content, that the paths are as the plan saw them.
func (r *rewinding) recheck(ctx context.Context) error {
	res, err := r.scan(ctx, workspace.Options{Reread: replaced(r.plan.Actions)})
	if err != nil {
		return err
	}
	changes, err := workspace.Diff(ctx, r.w.s.blobs, r.plan.present, res.Tree)
	if err != nil {
		return err
	}
	paths := r.paths()
	for _, c := range changes {
		if _, ours := slices.BinarySearch(paths, c.Path); ours {
			return fmt.Errorf("%w: %q", ErrChanged, c.Path)
		}
	}
	return nil
}

// scan scans the paths that the plan changes.
func (r *rewinding) scan(ctx context.Context, with workspace.Options) (*workspace.Result, error) {
	opts := r.w.s.opts.Scan
	opts.Force, opts.Touched, opts.Written, opts.Reread, opts.Modes = r.w.s.opts.Force, with.Touched, with.Written, with.Reread, with.Modes
	opts.Reveal = true
	opts.Full = false // parent directories were scanned when the plan was made
	return workspace.ScanPaths(ctx, r.w.s.blobs, r.w.path, r.job.present.index, r.paths(), &opts)
}

// written lists the files that need not be read back.
func (r *rewinding) written() map[string]workspace.Written {
	staged := r.swap.Written()
	m := make(map[string]workspace.Written, len(staged))
	for i := range r.plan.Actions {
		a := &r.plan.Actions[i]
		if s, ok := staged[a.Path]; ok {
			m[a.Path] = workspace.Written{
				ID: a.After.ID, Chunked: a.After.Chunked, Size: a.After.Size, Inode: s.Inode, Mtime: s.Mtime,
			}
		}
	}
	return m
}

// paths lists the paths that the plan changes, sorted.
func (r *rewinding) paths() []string {
	out := make([]string, len(r.changes))
	for i := range r.changes {
		out[i] = r.changes[i].Path
	}
	slices.Sort(out) // as actions are; recheck must not depend on it
	return out
}

// touched lists the paths that are captured regardless of ignore files. It includes
// only directories that are restored empty: others come with their content, and
// anything else in them is not ours.
func (r *rewinding) touched(want map[string]*workspace.Entry) []string {
	holds := map[string]bool{}
	for path, after := range want {
		if after != nil {
			dir, _ := splitPath(path)
			holds[dir] = true
		}
	}
	var paths []string
	for i := range r.plan.Actions {
		a := &r.plan.Actions[i]
		comes := a.Changes() && a.After != nil && !(isDir(a.Before) && isDir(a.After))
		if comes && (!isDir(a.After) || !holds[a.Path]) {
			paths = append(paths, a.Path)
		}
	}
	return paths
}

// verify scans what was written and compares it with the plan.
func (r *rewinding) verify(ctx context.Context) (*capture, error) {
	want, had := make(map[string]*workspace.Entry, len(r.changes)), make(map[string]*workspace.Entry, len(r.changes))
	for i := range r.plan.Actions {
		if a := &r.plan.Actions[i]; a.Changes() {
			want[a.Path], had[a.Path] = a.After, a.Before
		}
	}
	touched := r.touched(want)
	res, err := r.scan(ctx, workspace.Options{Touched: touched, Written: r.written(), Modes: modes(want)})
	if err != nil {
		return nil, fmt.Errorf("verify: %w", err)
	}
	changes := res.Changed // against the state before, whose index the scan used
	if changes == nil {
		if changes, err = workspace.Diff(ctx, r.w.s.blobs, r.plan.present, res.Tree); err != nil {
			return nil, fmt.Errorf("verify: %w", err)
		}
	}
	for _, c := range changes {
		after, planned := want[c.Path]
		if planned && !sameState(c.After, after) {
			if !lacksSetgid(c.After, after) {
				return nil, fmt.Errorf("verify: %w: %q is not what was written", ErrChanged, c.Path)
			}
			r.noSetgid = append(r.noSetgid, c.Path)
		}
		delete(want, c.Path)
	}
	for path, after := range want {
		if !lacksSetgid(had[path], after) {
			return nil, fmt.Errorf("verify: %w: %q did not change", ErrChanged, path)
		}
		r.noSetgid = append(r.noSetgid, path)
	}
	slices.Sort(r.noSetgid)
	if err := r.nameUncovered(ctx, changes); err != nil {
		return nil, fmt.Errorf("verify: %w", err)
	}
	skipped := mergeSkipped(r.job.present.skipped, res, r.paths())
	return &capture{tree: res.Tree, index: res.Index, skipped: skipped, changed: changes, scan: res}, nil
}

// modes returns the permission bits that entries should have. The scan uses them
// where the system stores none.
func modes(want map[string]*workspace.Entry) map[string]uint32 {
	m := make(map[string]uint32, len(want))
	for path, e := range want {
		if e != nil && e.Kind != workspace.Symlink {
			m[path] = e.Mode
		}
	}
	return m
}

// setgid is the permission bit that only members of the group and root can set.
const setgid = 0o2000

// lacksSetgid reports whether a state is the requested one except for that bit.
func lacksSetgid(got, asked *workspace.Entry) bool {
	if got == nil || asked == nil || asked.Mode&setgid == 0 {
		return false
	}
	less := *asked
	less.Mode &^= setgid
	return sameState(got, &less)
}
