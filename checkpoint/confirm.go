package checkpoint

import (
	"context"
	"fmt"
	"slices"

	"github.com/stet-dev/stet/workspace"
)

// confirmTries is how often a plan is made again because files changed meanwhile.
const confirmTries = 5

// confirmed makes a plan, and reads the files that it would replace or delete
// whatever their stamps say: not every change modifies the stamp. If a file differs
// from the plan, the plan is made again with the actual content, so that the change
// gets an author like any other.
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

// confirm reports whether the files that a plan replaces match it. If not, the index
// has their actual content afterwards.
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
	opts.Force, opts.Reread, opts.Full, opts.Reveal = w.s.opts.Force, files, false, true
	res, err := workspace.ScanPaths(ctx, w.s.blobs, w.path, job.present.index, paths, &opts)
	if err != nil {
		return false, err
	}
	if !slices.ContainsFunc(res.Changed, func(c workspace.Change) bool { return files[c.Path] }) {
		job.plan.NotKept = res.NotKept
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
