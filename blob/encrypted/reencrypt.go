package encrypted

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/fault"
)

// ReencryptOptions configure Reencrypt; nil and the zero value work.
type ReencryptOptions struct {
	// After continues after the stored name that an earlier run reached.
	After blob.ID
	// Progress, if set, is called from time to time, when everything up to Done is
	// durable. Its error ends the run and is returned.
	Progress func(ReencryptResult) error
}

// ReencryptResult counts stored blobs.
type ReencryptResult struct {
	Done       blob.ID // stored name up to which all blobs were checked
	Seen       int64
	Resealed   int64 // now under the active key
	Left       int64 // under a retired key, and the store cannot replace
	Unreadable int64 // kept as they are
}

// Reencrypt reseals blobs that are in seed form or under a retired key. It may run
// alongside all other calls, and may be stopped and started again at any time: it skips
// finished blobs. A blob in seed form is also stored in our form, and the next Sweep
// removes the old copy.
func (s *Store) Reencrypt(ctx context.Context, opts *ReencryptOptions) (ReencryptResult, error) {
	if opts == nil {
		opts = &ReencryptOptions{}
	}
	result := ReencryptResult{Done: opts.After}
	if err := s.ready(ctx); err != nil {
		return result, err
	}
	if s.opts.WriteSeedForm {
		return result, fmt.Errorf("reencrypt a store that writes the seed form: %w", errors.ErrUnsupported)
	}
	checkpoint := func() error {
		if err := s.inner.Flush(ctx); err != nil {
			return fmt.Errorf("flush resealed blobs: %w", err)
		}
		if opts.Progress != nil {
			return opts.Progress(result)
		}
		return nil
	}
	err := s.walk(ctx, opts.After, func(f found) error {
		if err := s.renew(ctx, f, &result); err != nil {
			return err
		}
		result.Seen++
		result.Done = f.info.ID
		if result.Seen%page == 0 {
			return checkpoint()
		}
		return nil
	})
	if err != nil {
		return result, err
	}
	if err := checkpoint(); err != nil {
		return result, err
	}
	if result.Left > 0 {
		return result, fmt.Errorf("%d blobs still use retired keys: the store below cannot replace blobs: %w", result.Left, errors.ErrUnsupported)
	}
	return result, nil
}

// renew reseals one blob if needed.
func (s *Store) renew(ctx context.Context, f found, result *ReencryptResult) error {
	if f.err != nil {
		result.Unreadable++
		s.report(f)
		return nil
	}
	active, err := s.ring.Active()
	if err != nil {
		return err
	}
	switch {
	case f.seed:
		var only bool
		if only, err = s.onlySeed(ctx, f.id); err != nil || !only {
			return err
		}
		err = s.adopt(ctx, f.id)
	case f.key == active.ID():
		return nil
	case s.opts.Replacer == nil:
		result.Left++
		return nil
	default:
		err = s.reseal(ctx, f)
	}
	switch {
	case err == nil:
		result.Resealed++
	case errors.Is(err, blob.ErrNotFound): // swept meanwhile
		err = nil
	case errors.Is(err, blob.ErrCorrupt): // its head is sound, its body is not
		result.Unreadable++
		f.err, err = err, nil
		s.report(f)
	}
	return err
}

// tries is how often a blob is read again after it was replaced between two reads.
const tries = 4

func (s *Store) reseal(ctx context.Context, f found) (err error) {
	for range tries {
		if f.info.Stored <= maxWhole || !f.base.IsZero() {
			return s.resealWhole(ctx, f)
		}
		if f.base, err = s.resealStream(ctx, f); !errors.Is(err, errMoved) {
			return err
		}
	}
	return err
}

// errMoved means that a blob was replaced between two reads.
var errMoved = fault.New(fault.Stale, "blob was replaced meanwhile")

// resealWhole passes what it reads to the store below, with the base read at the same
// time. The blob's base may have changed since it was found, and the blob may be
// removed and put again without one meanwhile.
func (s *Store) resealWhole(ctx context.Context, f found) error {
	name := f.info.ID
	stored, err := s.inner.Get(ctx, name)
	if err != nil {
		return err
	}
	o, err := s.opener(f.id, name, stored)
	if err != nil {
		return blame(f.id, err)
	}
	content, err := o.openBody(stored[o.headSize():])
	if err != nil {
		return blame(f.id, err)
	}
	sealed, err := s.sealBlob(blob.Blob{ID: f.id, Data: content, Base: o.base})
	if err != nil {
		return fmt.Errorf("seal blob %s: %w", f.id, err)
	}
	if err := s.opts.Replacer.Replace(ctx, sealed); err != nil {
		return fmt.Errorf("replace sealed blob %s: %w", f.id, err)
	}
	return nil
}

// resealStream reads a large blob twice: once to verify it and learn its length, once
// to seal it. For a blob that changed meanwhile it returns errMoved and the current
// base. A blob without a base can be read whatever base the store below records.
func (s *Store) resealStream(ctx context.Context, f found) (base blob.ID, err error) {
	r, base, err := s.openStored(ctx, f)
	if err != nil {
		return base, err
	}
	size, err := io.Copy(io.Discard, r)
	if err = errors.Join(err, r.Close()); err != nil {
		return base, err
	}
	if r, base, err = s.openStored(ctx, f); err != nil {
		return base, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	src, stored, err := s.sealing(f.id, base, f.info.ID, r, size)
	if err == nil {
		err = s.opts.Replacer.ReplaceFrom(ctx, f.info.ID, src, stored)
	}
	if errors.Is(err, blob.ErrMismatch) {
		return base, fmt.Errorf("replace sealed blob %s: %w: %w", f.id, errMoved, err)
	}
	if err != nil {
		return base, fmt.Errorf("replace sealed blob %s: %w", f.id, err)
	}
	return base, nil
}

// openStored opens a blob found by walk, unless it has a base.
func (s *Store) openStored(ctx context.Context, f found) (io.ReadCloser, blob.ID, error) {
	below, err := blob.Open(ctx, s.inner, f.info.ID)
	if err != nil {
		return nil, blob.ID{}, err
	}
	r, err := s.openStream(f.id, f.info.ID, below)
	if err != nil {
		return nil, blob.ID{}, err
	}
	if base := r.o.base; !base.IsZero() {
		return nil, base, errors.Join(errMoved, r.Close())
	}
	return r, blob.ID{}, nil
}
