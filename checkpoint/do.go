package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// batchSize is the number of steps that share one timeout.
const batchSize = 64

// check looks once more at what the steps are about to replace, and remembers
// which file exactly that is.
func (s *stageDir) check(steps []*step) error {
	gone := map[string]bool{}
	look := s.d.look()
	defer look.close()
	for _, st := range steps {
		now, err := look.lstat(st.path)
		switch {
		case st.kind == stepChmod:
			continue
		case st.kind == stepInstall && !gone[st.path]:
			if err == nil {
				return fmt.Errorf("%w: %q appeared", ErrChanged, st.path)
			}
			if !isNotExist(err) {
				return err
			}
			continue
		case st.kind == stepInstall:
			continue
		}
		if isNotExist(err) {
			return fmt.Errorf("%w: %q disappeared", ErrChanged, st.path)
		}
		if err != nil {
			return err
		}
		st.old = now
		gone[st.path] = st.kind == stepRemove
	}
	return nil
}

// run takes the steps, in batches that must each end in time.
func (w *Workspace) run(ctx context.Context, s *stageDir, steps []*step, progress func(done, all int)) error {
	done := 0
	for batch := range slices.Chunk(steps, batchSize) {
		limit := w.s.opts.timeout(len(batch))
		deadline := time.Now().Add(limit)
		for _, st := range batch {
			if err := ctx.Err(); err != nil {
				return err
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("%w: %d operations took longer than %v", ErrTimeout, len(batch), limit)
			}
			if err := s.do(st); err != nil {
				return err
			}
			if done++; progress != nil {
				progress(done, len(steps))
			}
		}
	}
	return s.syncParents(steps)
}

// do takes one step. What it replaces stays in the staging directory.
func (s *stageDir) do(st *step) error {
	switch st.kind {
	case stepChmod:
		return s.d.chmodDir(st.path, st.newMode)
	case stepInstall:
		return changedIf(s.put(st.newSlot(), st.path), fs.ErrExist, st.path, "appeared")
	case stepRemove:
		return s.doRemove(st)
	}
	err := s.swap(st.path, st.newSlot())
	if errors.Is(err, errors.ErrUnsupported) {
		if err := s.doRemove(st); err != nil {
			return err
		}
		return changedIf(s.put(st.newSlot(), st.path), fs.ErrExist, st.path, "appeared")
	}
	if err != nil {
		return changedIf(err, fs.ErrNotExist, st.path, "disappeared")
	}
	return s.sameAs(st.newSlot(), st)
}

func (s *stageDir) doRemove(st *step) error {
	if err := s.take(st.path, st.oldSlot()); err != nil {
		return changedIf(err, fs.ErrNotExist, st.path, "disappeared")
	}
	return s.sameAs(st.oldSlot(), st)
}

// sameAs makes sure that what was replaced is what was checked. Whoever wrote in
// between gets it back when the steps are taken back.
func (s *stageDir) sameAs(slot string, st *step) error {
	got, err := s.stat(slot)
	if err != nil {
		return err
	}
	if !got.same(st.old) {
		return fmt.Errorf("%w: %q was written to", ErrChanged, st.path)
	}
	if !got.isDir() {
		return nil
	}
	empty, err := s.empty(slot)
	if err == nil && !empty {
		err = fmt.Errorf("%w: something appeared in %q", ErrChanged, st.path)
	}
	return err
}

func changedIf(err, cause error, path, what string) error {
	if errors.Is(err, cause) {
		return fmt.Errorf("%w: %q %s", ErrChanged, path, what)
	}
	return err
}

// syncParents makes the changed names durable.
func (s *stageDir) syncParents(steps []*step) error {
	dirs := map[string]struct{}{}
	for _, st := range steps {
		dir, _ := splitPath(st.path)
		dirs[dir] = struct{}{}
		if st.kind == stepChmod {
			dirs[st.path] = struct{}{}
		}
	}
	if len(dirs) >= manySyncs {
		if arrived, _ := s.syncAll(); arrived {
			return nil
		}
	}
	var g errgroup.Group
	g.SetLimit(stageWorkers)
	for dir := range dirs {
		g.Go(func() error {
			err := s.d.syncDir(dir)
			if isNotExist(err) || errors.Is(err, syscall.ENOTDIR) {
				return nil // replaced by a step, which the directory above recorded
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("sync directories: %w", err)
	}
	return nil
}
