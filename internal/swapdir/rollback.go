package swapdir

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"syscall"
)

// rollback takes steps back, the last one first. It goes by what it finds on
// the disk, not by what was planned, so it can follow a crash at any point, its own
// included, and may be repeated. It returns the paths that it left alone because
// another program changed them after the steps were taken.
func (s *stageDir) rollback(steps []*step) (left []string, err error) {
	var errs []error
	for i := len(steps) - 1; i >= 0; i-- {
		st := steps[i]
		kept, err := s.undo(st)
		if err != nil {
			errs = append(errs, fmt.Errorf("put back %q: %w", st.Path, err))
		}
		if kept {
			left = append(left, st.Path)
		}
	}
	if err := s.syncParents(steps); err != nil {
		errs = append(errs, err)
	}
	return left, errors.Join(errs...)
}

func (s *stageDir) undo(st *step) (kept bool, err error) {
	switch st.Kind {
	case Chmod:
		return false, s.undoChmod(st)
	case Install:
		return s.undoInstall(st)
	case Remove:
		return s.putBack(st.oldSlot(), st.Path)
	}
	return s.undoSwap(st)
}

func (s *stageDir) undoChmod(st *step) error {
	now, err := s.d.lstat(st.Path)
	if isNotExist(err) {
		return nil
	}
	if err != nil || !now.dir || !cameTo(now.mode&0o7777, st.NewMode) {
		return err
	}
	return s.d.chmodDir(st.Path, st.OldMode)
}

// has tells whether a slot is taken, and by what.
func (s *stageDir) has(slot string) (stat, bool, error) {
	st, err := s.stat(slot)
	if isNotExist(err) {
		return stat{}, false, nil
	}
	return st, err == nil, err
}

// undoInstall moves what a step brought back to its slot.
func (s *stageDir) undoInstall(st *step) (kept bool, err error) {
	slot, there, err := s.has(st.newSlot())
	if err != nil {
		return false, err
	}
	if there {
		return false, s.untwin(st, slot)
	}
	now, err := s.d.lstat(st.Path)
	if isNotExist(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if !st.isStaged(now) {
		return true, nil
	}
	if !now.dir {
		return false, s.take(st.Path, st.newSlot())
	}
	// A directory is moved only if it is empty: others may have put something in.
	empty, err := s.d.empty(st.Path)
	if err != nil || !empty {
		return !empty, err
	}
	return false, s.take(st.Path, st.newSlot())
}

// undoSwap lets a path and its slot trade back.
func (s *stageDir) undoSwap(st *step) (kept bool, err error) {
	slot, there, err := s.has(st.newSlot())
	if err != nil {
		return false, err
	}
	// Nothing was brought; at most something was taken. A step whose staging failed
	// does not know what it staged.
	if there && (slot.ino == st.Staged.Inode || st.Staged.Inode == 0) {
		if err := s.untwin(st, slot); err != nil {
			return false, err
		}
		return s.putBack(st.oldSlot(), st.Path)
	}
	now, err := s.d.lstat(st.Path)
	missing := isNotExist(err)
	if err != nil && !missing {
		return false, err
	}
	if !missing && !st.isStaged(now) {
		_, took, err := s.has(st.oldSlot())
		return there || took, err
	}
	switch {
	case there && missing:
		return s.putBack(st.newSlot(), st.Path)
	case there:
		return s.swapBack(st)
	case missing:
		return s.putBack(st.oldSlot(), st.Path)
	}
	// The file system cannot swap: the new file came after the old one had gone.
	if _, took, err := s.has(st.oldSlot()); !took || err != nil {
		return false, err
	}
	if err := s.take(st.Path, st.newSlot()); err != nil {
		return false, err
	}
	return s.putBack(st.oldSlot(), st.Path)
}

// swapBack lets a path and its slot trade back. The journal may be of a system that can do
// that in one step: elsewhere the new file goes first, and the path is missing for a moment.
func (s *stageDir) swapBack(st *step) (kept bool, err error) {
	err = s.swap(st.Path, st.newSlot())
	if !errors.Is(err, errors.ErrUnsupported) {
		return false, err
	}
	if err := s.take(st.Path, st.twinSlot()); err != nil {
		return false, err
	}
	return s.putBack(st.newSlot(), st.Path)
}

// putBack moves a slot, if there is anything in it, to its path, unless another
// program put something else there or removed the directory.
func (s *stageDir) putBack(slot, path string) (kept bool, err error) {
	old, there, err := s.has(slot)
	if !there || err != nil {
		return false, err
	}
	err = s.put(slot, path)
	if errors.Is(err, fs.ErrExist) {
		now, err := s.d.lstat(path)
		return err != nil || !now.twin(old), nil
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return true, nil
	}
	return false, err
}

// untwin takes from a path what the step's slot has as well: on some file systems
// a file gets its new name before it loses the old one, and a crash came between.
func (s *stageDir) untwin(st *step, slot stat) error {
	now, err := s.d.lstat(st.Path)
	if isNotExist(err) {
		return nil
	}
	if err != nil || !now.twin(slot) {
		return err
	}
	if err := s.take(st.Path, st.twinSlot()); err != nil {
		return err
	}
	if now, err = s.stat(st.twinSlot()); err != nil || now.twin(slot) {
		return err
	}
	_, err = s.putBack(st.twinSlot(), st.Path) // another program was faster
	return err
}

// taken lists the paths at which a step shows to have been taken.
func (d *disk) taken(steps []*step) ([]string, error) {
	var paths []string
	for _, st := range steps {
		now, err := d.lstat(st.Path)
		missing := isNotExist(err)
		if err != nil && !missing {
			return nil, err
		}
		var took bool
		switch st.Kind {
		case Chmod:
			took = now.dir && cameTo(now.mode&0o7777, st.NewMode)
		case Remove:
			took = missing
		case Exchange:
			took = missing || st.isStaged(now)
		case Install:
			took = st.isStaged(now)
		}
		if took {
			paths = append(paths, st.Path)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths), nil
}
