package pack

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/internal/abreast"
)

// describe returns the given blobs that are stored, and all their bases. Blobs that were
// read before are not looked up again.
func (s *Store) describe(ctx context.Context, names []blob.ID, read *taken) ([]blob.Info, error) {
	flushed := false
	known := make(map[blob.ID]blob.Info)
	asked := make(map[blob.ID]bool)
	order := slices.Clone(names)
	for next := names; len(next) > 0; {
		var fresh []blob.ID
		for _, name := range next {
			if !asked[name] {
				asked[name] = true
				fresh = append(fresh, name)
			}
		}
		var unread []blob.ID
		for _, name := range fresh {
			if one, ok := read.get(name); ok {
				known[name] = blob.Info{ID: name, Stored: int64(len(one.Data)), Base: one.Base}
			} else {
				unread = append(unread, name)
			}
		}
		var err error
		if len(unread) > 0 && !flushed {
			flushed, err = true, s.blobs.Flush(ctx)
		}
		if err == nil {
			err = s.lookUp(ctx, unread, known)
		}
		if err != nil {
			return nil, fmt.Errorf("describe blobs: %w", err)
		}
		next = nil
		for _, name := range fresh {
			if base := known[name].Base; !base.IsZero() && !asked[base] {
				next, order = append(next, base), append(order, base)
			}
		}
	}
	out := make([]blob.Info, 0, len(known))
	for _, name := range order {
		info, stored := known[name]
		if _, ok := known[info.Base]; !ok && !info.Base.IsZero() {
			return nil, blob.Corrupt(info.ID, "its base %s is missing", info.Base)
		}
		if stored && asked[name] {
			out = append(out, info)
			asked[name] = false // look up once
		}
	}
	return out, nil
}

// lookUp adds the driver's information about names to known.
func (s *Store) lookUp(ctx context.Context, names []blob.ID, known map[blob.ID]blob.Info) error {
	if s.driver.Rewriter == nil {
		if s.driver.Lister == nil {
			return fmt.Errorf("the store below cannot list them: %w", errors.ErrUnsupported)
		}
		return listed(ctx, s.driver.Lister, names, known)
	}
	// Several at once, because a remote driver takes long for each.
	infos, errs := abreast.Each(names, askers, func(name blob.ID) (blob.Info, error) { return s.driver.Rewriter.Info(ctx, name) })
	for i, name := range names {
		if errors.Is(errs[i], blob.ErrNotFound) {
			continue
		}
		if errs[i] != nil {
			return errs[i]
		}
		known[name] = infos[i]
	}
	return nil
}

// askers is how many blobs are looked up at once.
const askers = 32

var errEnough = errors.New("enough")

// patience is how many unneeded blobs are skipped before the list restarts at the
// next needed one.
const patience = 512

// listed is lookUp by listing.
func listed(ctx context.Context, lister blob.Lister, names []blob.ID, known map[blob.ID]blob.Info) error {
	names = slices.Clone(names)
	slices.SortFunc(names, blob.ID.Compare)
	for len(names) > 0 {
		passed := 0
		err := lister.List(ctx, before(names[0]), func(info blob.Info) error {
			for len(names) > 0 && names[0].Compare(info.ID) < 0 {
				names = names[1:] // not stored
			}
			if len(names) > 0 && names[0] == info.ID {
				known[info.ID] = info
				names, passed = names[1:], 0
			}
			if passed++; len(names) == 0 || passed > patience {
				return errEnough
			}
			return nil
		})
		if err == nil {
			return nil // the list has ended
		}
		if !errors.Is(err, errEnough) {
			return err
		}
	}
	return nil
}

// before returns the id before another one.
func before(id blob.ID) blob.ID {
	for i := len(id) - 1; i >= 0; i-- {
		id[i]--
		if id[i] != 0xff {
			break
		}
	}
	return id
}
