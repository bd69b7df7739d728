package encrypted

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/keyring"
)

// UnreadableError means that the store below holds blobs that cannot be opened. It
// wraps blob.ErrCorrupt and the first cause.
type UnreadableError struct {
	Count int64
	First blob.ID // stored name
	Cause error
	Names []blob.ID // stored names of all of them
}

func (e *UnreadableError) Error() string {
	return fmt.Sprintf("cannot read %d stored blobs, first %s: %v", e.Count, e.First, e.Cause)
}

// Unwrap returns blob.ErrCorrupt and the cause.
func (e *UnreadableError) Unwrap() []error { return []error{blob.ErrCorrupt, e.Cause} }

// found is one entry of the store below.
type found struct {
	info blob.Info // as in the store below, with names
	id   blob.ID   // its id
	base blob.ID
	seed bool // in seed form
	key  keyring.KeyID
	err  error // why it cannot be read; then only info is set
}

// page is how many entries are listed before any of them is read: a store may not
// allow calls while it lists.
const page = 256

var errPageFull = errors.New("page full")

// walk calls fn for everything in the store below, in the order of names.
func (s *Store) walk(ctx context.Context, after blob.ID, fn func(found) error) error {
	if s.opts.Lister == nil {
		return fmt.Errorf("list sealed blobs: the store below cannot: %w", errors.ErrUnsupported)
	}
	for {
		infos := make([]blob.Info, 0, page)
		err := s.opts.Lister.List(ctx, after, func(i blob.Info) error {
			infos = append(infos, i)
			if len(infos) == page {
				return errPageFull
			}
			return nil
		})
		if err != nil && !errors.Is(err, errPageFull) {
			return fmt.Errorf("list sealed blobs: %w", err)
		}
		for _, info := range infos {
			f, readErr := s.identify(ctx, info)
			if readErr != nil {
				return readErr
			}
			if f == nil {
				continue // removed since it was listed
			}
			if err := fn(*f); err != nil {
				return err
			}
		}
		if err == nil {
			return nil
		}
		after = infos[len(infos)-1].ID
	}
}

// identify reads the head of an entry. It returns an error only if it cannot go on;
// an error about the entry is in the result.
func (s *Store) identify(ctx context.Context, info blob.Info) (*found, error) {
	head, err := s.readStored(ctx, info.ID)
	if err != nil {
		if errors.Is(err, blob.ErrNotFound) {
			return nil, nil
		}
		if errors.Is(err, blob.ErrCorrupt) {
			return &found{info: info, err: err}, nil
		}
		return nil, fmt.Errorf("read head of stored blob %s: %w", info.ID, err)
	}
	f := &found{info: info}
	if s.ring != nil {
		var o *opened
		if o, err = s.opener(blob.ID{}, info.ID, head); err == nil {
			f.id, f.base, f.key = o.id, o.base, o.key
			return f, nil
		}
		err = blame(info.ID, err)
	}
	if s.opts.AllowSeedForm && !isSealed(head) {
		// The form has no head; only reading it whole identifies it.
		if _, err = s.getSeed(ctx, info.ID); err == nil {
			f.id, f.seed = info.ID, true
			return f, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	f.err = err
	return f, nil
}

func isSealed(head []byte) bool {
	_, err := parseHeader(head)
	return !errors.Is(err, errDamaged)
}

// readStored reads the first bytes of an entry.
func (s *Store) readStored(ctx context.Context, name blob.ID) ([]byte, error) {
	r, err := blob.Open(ctx, s.inner, name)
	if err != nil {
		return nil, err
	}
	head, err := readHead(r)
	return head, errors.Join(err, r.Close())
}

// List implements blob.Lister. Names below are ordered differently from ids, so it
// reads the head of every blob and sorts before it calls fn, with about 80 bytes of
// memory for each. After the last call it returns an UnreadableError if some blobs
// cannot be opened; it has listed all others.
func (s *Store) List(ctx context.Context, after blob.ID, fn func(blob.Info) error) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	var infos []blob.Info
	var unreadable *UnreadableError
	err := s.walk(ctx, blob.ID{}, func(f found) error {
		if f.err != nil {
			unreadable = unreadable.add(f)
			s.report(f)
		} else if f.id.Compare(after) > 0 {
			infos = append(infos, blob.Info{ID: f.id, Stored: f.info.Stored, Base: f.base})
		}
		return nil
	})
	if err != nil {
		return err
	}
	slices.SortFunc(infos, func(a, b blob.Info) int { return a.ID.Compare(b.ID) })
	for i, info := range infos {
		if i > 0 && infos[i-1].ID == info.ID {
			continue // in both forms
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := fn(info); err != nil {
			return err
		}
	}
	if unreadable != nil {
		return unreadable
	}
	return nil
}

func (e *UnreadableError) add(f found) *UnreadableError {
	if e == nil {
		e = &UnreadableError{First: f.info.ID, Cause: f.err}
	}
	e.Count++
	e.Names = append(e.Names, f.info.ID)
	return e
}

func (s *Store) report(f found) {
	if s.opts.Unreadable != nil {
		s.opts.Unreadable(f.info.ID, f.err)
	}
}

// Begin implements blob.Sweeper.
func (s *Store) Begin(ctx context.Context) (uint64, error) {
	if err := s.ready(ctx); err != nil {
		return 0, err
	}
	sweeper, err := s.sweeper()
	if err != nil {
		return 0, err
	}
	return sweeper.Begin(ctx)
}

func (s *Store) sweeper() (blob.Sweeper, error) {
	if s.opts.Sweeper == nil {
		return nil, fmt.Errorf("sweep sealed blobs: the store below cannot: %w", errors.ErrUnsupported)
	}
	return s.opts.Sweeper, nil
}

// Sweep implements blob.Sweeper. It first reads the head of every stored blob to
// learn its id. Blobs that cannot be opened are kept and counted as kept, because
// they may be needed; so are blobs put meanwhile.
func (s *Store) Sweep(ctx context.Context, generation uint64, opts blob.SweepOptions) (blob.SweepResult, error) {
	if err := s.ready(ctx); err != nil {
		return blob.SweepResult{}, err
	}
	sweeper, err := s.sweeper()
	if err != nil {
		return blob.SweepResult{}, err
	}
	if opts.Live == nil {
		return blob.SweepResult{}, errors.New("sweep sealed blobs: SweepOptions.Live is nil")
	}
	dead := map[blob.ID]struct{}{}
	err = s.walk(ctx, blob.ID{}, func(f found) error {
		if f.err != nil {
			s.report(f)
			return nil
		}
		needed := opts.Live(f.id)
		if needed && f.seed {
			var err error
			if needed, err = s.onlySeed(ctx, f.id); err != nil {
				return err
			}
		}
		if !needed {
			dead[f.info.ID] = struct{}{}
		}
		return nil
	})
	if err != nil {
		return blob.SweepResult{}, err
	}
	opts.Live = func(name blob.ID) bool {
		_, gone := dead[name]
		return !gone
	}
	return sweeper.Sweep(ctx, generation, opts)
}

// onlySeed reports whether a blob in seed form is the only copy. Once it is sealed in
// our form, the old copy may be removed.
func (s *Store) onlySeed(ctx context.Context, id blob.ID) (bool, error) {
	if s.opts.WriteSeedForm || s.ring == nil {
		return true, nil
	}
	has, err := s.inner.Has(ctx, s.sealedName(id))
	if err != nil {
		return false, fmt.Errorf("look for sealed blob %s: %w", id, err)
	}
	return !has[0], nil
}
