package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"golang.org/x/sync/errgroup"

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

// undisturbed looks once more at all that was replaced: programs that had a file
// open, or worked in a directory, go on writing there, and it is about to go. Files
// are read, for a store through a mapping and the end of a long write leave no stamp.
// What follows is lost, as with any program that replaces a file.
func (s *stageDir) undisturbed(steps []*step) error {
	var g errgroup.Group
	g.SetLimit(stageWorkers)
	for _, st := range steps {
		if st.kind != stepSwap && st.kind != stepRemove {
			continue
		}
		g.Go(func() error { return s.undisturbedBy(st) })
	}
	return g.Wait()
}

func (s *stageDir) undisturbedBy(st *step) error {
	slot := st.oldSlot()
	if st.kind == stepSwap {
		if _, traded, err := s.has(st.newSlot()); err != nil {
			return err
		} else if traded {
			slot = st.newSlot()
		}
	}
	if err := s.sameAs(slot, st); err != nil {
		return err
	}
	if st.from == nil || st.from.Kind != workspace.File {
		return nil
	}
	f, err := s.open(slot)
	if err != nil {
		return err
	}
	got, err := workspace.HashFile(io.LimitReader(f, st.from.Size+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("read what was replaced at %q: %w", st.path, err)
	}
	if got.ID != st.from.ID || got.Size != st.from.Size {
		return fmt.Errorf("%w: %q was written to", ErrChanged, st.path)
	}
	return nil
}
