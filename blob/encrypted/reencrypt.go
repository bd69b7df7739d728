package encrypted

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/stet-dev/stet/blob"
)

// ReencryptOptions shape Reencrypt; nil and the zero value work.
type ReencryptOptions struct {
	// After continues behind the stored name that an earlier run reached.
	After blob.ID
	// Replacer exchanges blobs that are sealed with a retired key. Without it the
	// store below is asked whether it is one itself.
	Replacer blob.Replacer
	// Progress, if set, is called now and then when everything up to Done is
	// durable. Its error ends the run and is returned.
	Progress func(ReencryptResult) error
}

// ReencryptResult counts stored blobs.
type ReencryptResult struct {
	Done       blob.ID // stored name up to which all were looked at
	Seen       int64
	Resealed   int64 // now under the active key
	Left       int64 // under a retired key, and the store cannot replace
	Unreadable int64 // kept as they are
}

// Reencrypt seals blobs anew that are in seed form or under a retired key. It
// may run beside all other calls, be stopped at any time and started again:
// blobs that are done are passed over. A blob in seed form is stored in our form
// as well, and the next Sweep removes the old copy.
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
	replacer := opts.Replacer
	if replacer == nil {
		replacer, _ = s.inner.(blob.Replacer)
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
		if err := s.renew(ctx, f, replacer, &result); err != nil {
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
		return result, fmt.Errorf("%d blobs stay under retired keys: the store below cannot replace blobs: %w", result.Left, errors.ErrUnsupported)
	}
	return result, nil
}

// renew seals one blob anew where that is due.
func (s *Store) renew(ctx context.Context, f found, replacer blob.Replacer, result *ReencryptResult) error {
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
	case replacer == nil:
		result.Left++
		return nil
	default:
		err = s.reseal(ctx, f, replacer)
	}
	switch {
	case err == nil:
		result.Resealed++
	case errors.Is(err, blob.ErrNotFound): // swept meanwhile
		err = nil
	case errors.Is(err, blob.ErrCorrupt): // its head opens, its body does not
		result.Unreadable++
		f.err, err = err, nil
		s.report(f)
	}
	return err
}

// tries is how often a blob is looked at again that was replaced between two looks.
const tries = 4

func (s *Store) reseal(ctx context.Context, f found, replacer blob.Replacer) (err error) {
	for range tries {
		if f.info.Stored <= maxWhole || !f.base.IsZero() {
			return s.resealWhole(ctx, f, replacer)
		}
		if f.base, err = s.resealStream(ctx, f, replacer); !errors.Is(err, errMoved) {
			return err
		}
	}
	return err
}

// errMoved says that a blob was replaced between two looks.
var errMoved = errors.New("blob was replaced meanwhile")

// resealWhole goes by what it reads, and gives that to the store below with its base:
// the blob may have another one since it was found, and may be removed and put anew
// without one while this works.
func (s *Store) resealWhole(ctx context.Context, f found, replacer blob.Replacer) error {
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
	if err := replacer.Replace(ctx, sealed); err != nil {
		return fmt.Errorf("replace sealed blob %s: %w", f.id, err)
	}
	return nil
}

// resealStream reads a large blob twice: once to learn its length and that it is
// sound, once to seal it. It returns errMoved for one that changed meanwhile, with
// the base that it has now. One without a base can be read whatever the store below
// says that it leans on.
func (s *Store) resealStream(ctx context.Context, f found, replacer blob.Replacer) (base blob.ID, err error) {
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
		err = replacer.ReplaceFrom(ctx, f.info.ID, src, stored)
	}
	if errors.Is(err, blob.ErrMismatch) {
		return base, fmt.Errorf("replace sealed blob %s: %w: %w", f.id, errMoved, err)
	}
	if err != nil {
		return base, fmt.Errorf("replace sealed blob %s: %w", f.id, err)
	}
	return base, nil
}

// openStored opens a blob that was found, unless it has a base.
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
