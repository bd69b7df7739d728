package swapdir

import (
	"cmp"
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
	gone, comes := map[string]bool{}, map[string]bool{}
	look := s.d.look()
	defer look.close()
	for _, st := range steps {
		dir, _ := splitPath(st.Path)
		if st.Kind == Install {
			comes[st.Path] = true
		}
		// What a directory that comes holds comes with it, and nothing is there before.
		if st.Kind == Install && !gone[st.Path] && !comes[dir] {
			there, err := s.appeared(look, st.Path)
			if err != nil {
				return err
			}
			if there {
				return fmt.Errorf("%w: %q appeared", ErrChanged, st.Path)
			}
		}
		if st.Kind == Install || st.Kind == Chmod {
			continue
		}
		now, err := look.lstat(st.Path)
		if isNotExist(err) {
			return fmt.Errorf("%w: %q disappeared", ErrChanged, st.Path)
		}
		if err != nil {
			return err
		}
		st.old = now
		gone[st.Path] = st.Kind == Remove
	}
	return nil
}

// appeared reports whether something is at a path where nothing should be. Where names
// fold, only the list of the directory tells: a look may find what goes under another
// spelling, and a system may remember for a second that it did.
func (s *stageDir) appeared(look *looker, path string) (bool, error) {
	if !s.d.folds {
		_, err := look.lstat(path)
		if isNotExist(err) {
			return false, nil
		}
		return err == nil, err
	}
	dir, name := splitPath(path)
	names, err := s.d.names(dir)
	if isNotExist(err) || errors.Is(err, syscall.ENOTDIR) {
		return false, nil
	}
	return slices.Contains(names, name), err
}

// run takes the steps, in batches that must each end in time.
func (s *stageDir) run(ctx context.Context, steps []*step, opts *RunOptions) error {
	done := 0
	for batch := range slices.Chunk(steps, batchSize) {
		late := deadline(len(batch), opts.Timeout)
		for _, st := range batch {
			if err := cmp.Or(ctx.Err(), late()); err != nil {
				return err
			}
			if err := s.do(st); err != nil {
				return err
			}
			if done++; opts.Progress != nil {
				opts.Progress(done, len(steps))
			}
		}
	}
	return s.syncParents(steps)
}

// deadline returns a function that returns ErrTimeout when steps take too long.
func deadline(steps int, timeout func(int) time.Duration) (late func() error) {
	if timeout == nil {
		return func() error { return nil }
	}
	limit := timeout(steps)
	end := time.Now().Add(limit)
	return func() error {
		if time.Now().After(end) {
			return fmt.Errorf("%w: %d operations took longer than %v", ErrTimeout, steps, limit)
		}
		return nil
	}
}

// do takes one step. What it replaces stays in the staging directory.
func (s *stageDir) do(st *step) error {
	switch st.Kind {
	case Chmod:
		return s.d.chmodDir(st.Path, st.NewMode)
	case Install:
		return changedIf(s.put(st.newSlot(), st.Path), fs.ErrExist, st.Path, "appeared")
	case Remove:
		return s.doRemove(st)
	}
	err := s.swap(st.Path, st.newSlot())
	if errors.Is(err, errors.ErrUnsupported) {
		if err := s.doRemove(st); err != nil {
			return err
		}
		return changedIf(s.put(st.newSlot(), st.Path), fs.ErrExist, st.Path, "appeared")
	}
	if err != nil {
		return changedIf(err, fs.ErrNotExist, st.Path, "disappeared")
	}
	return s.sameAs(st.newSlot(), st)
}

func (s *stageDir) doRemove(st *step) error {
	if err := s.take(st.Path, st.oldSlot()); err != nil {
		return changedIf(err, fs.ErrNotExist, st.Path, "disappeared")
	}
	return s.sameAs(st.oldSlot(), st)
}

// sameAs makes sure that what was replaced is what was checked. What another program
// wrote in between comes back when the steps are taken back.
func (s *stageDir) sameAs(slot string, st *step) error {
	got, err := s.stat(slot)
	if err != nil {
		return err
	}
	if !got.same(st.old) {
		return fmt.Errorf("%w: %q was written to", ErrChanged, st.Path)
	}
	if !got.dir {
		return nil
	}
	empty, err := s.empty(slot)
	if err == nil && !empty {
		err = fmt.Errorf("%w: something appeared in %q", ErrChanged, st.Path)
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
		dir, _ := splitPath(st.Path)
		dirs[dir] = struct{}{}
		if st.Kind == Chmod {
			dirs[st.Path] = struct{}{}
		}
	}
	if flushesAll && len(dirs) >= manySyncs {
		if arrived, _ := s.syncAll(); arrived {
			return nil
		}
	}
	var g errgroup.Group
	g.SetLimit(s.d.workers)
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
