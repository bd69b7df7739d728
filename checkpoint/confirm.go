package checkpoint

import (
	"context"
	"fmt"
	"slices"

	"github.com/stet-dev/stet/workspace"
)

// confirmTries is how often a plan is made whose files changed while it was made.
const confirmTries = 5

// confirmed makes a plan, and reads the files that it would replace or delete,
// whatever their stamps say: not every change moves one. If a file is not what the
// plan took it for, the plan is made again with what it is, so that the change is
// somebody's like any other.
func (w *Workspace) confirmed(ctx context.Context, make func() (*job, error)) (*job, error) {
	for range confirmTries {
		job, err := make()
		if err != nil {
			return nil, err
		}
		ok, err := w.confirm(ctx, job)
		if err != nil || ok {
			return job, err
		}
	}
	return nil, fmt.Errorf("%w: files are being written to", ErrChanged)
}

// confirm reports whether the files that a plan replaces are what it says. If not,
// the index knows what they are afterwards.
func (w *Workspace) confirm(ctx context.Context, job *job) (bool, error) {
	files := replaced(job.plan.Actions)
	if len(files) == 0 {
		return true, nil
	}
	paths := make([]string, 0, len(files))
	for path := range files {
		paths = append(paths, path)
	}
	opts := w.s.opts.Scan
	opts.Force, opts.Reread, opts.Full = w.s.opts.Force, files, false
	res, err := workspace.ScanPaths(ctx, w.s.blobs, w.path, job.present.index, paths, &opts)
	if err != nil {
		return false, err
	}
	if !slices.ContainsFunc(res.Changed, func(c workspace.Change) bool { return files[c.Path] }) {
		return true, nil
	}
	return false, w.keepIndex(res.Index)
}

// replaced lists the files that actions replace or delete.
func replaced(actions []Action) map[string]bool {
	files := map[string]bool{}
	for i := range actions {
		if a := &actions[i]; a.Changes() && a.Before != nil && a.Before.Kind == workspace.File {
			files[a.Path] = true
		}
	}
	return files
}
