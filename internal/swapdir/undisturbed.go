package swapdir

import (
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"
)

// Undisturbed looks once more at everything that was replaced, and returns ErrChanged if
// another program wrote to it since Check: programs that had a file open, or worked in a
// directory, go on writing there, and it is about to go. Files are read, since a store
// through a mapping and the end of a long write leave no stamp. What follows is lost, as
// with any program that replaces a file. It changes nothing.
func (s *Swap) Undisturbed() error {
	var g errgroup.Group
	g.SetLimit(s.stage.d.workers)
	for _, st := range s.steps {
		if st.Kind != Exchange && st.Kind != Remove {
			continue
		}
		g.Go(func() error { return s.stage.undisturbedBy(st, s.contents) })
	}
	return g.Wait()
}

func (s *stageDir) undisturbedBy(st *step, contents Contents) error {
	slot := st.oldSlot()
	if st.Kind == Exchange {
		if _, traded, err := s.has(st.newSlot()); err != nil {
			return err
		} else if traded {
			slot = st.newSlot()
		}
	}
	if err := s.sameAs(slot, st); err != nil {
		return err
	}
	if st.from == nil || st.from.Kind != File {
		return nil
	}
	f, err := s.open(slot)
	if err != nil {
		return err
	}
	same, err := contents.IsOld(st.Path, f)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("read what was replaced at %q: %w", st.Path, err)
	}
	if !same {
		return fmt.Errorf("%w: %q was written to", ErrChanged, st.Path)
	}
	return nil
}
