package encrypted

import (
	"bytes"
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

func (s *Store) reseal(ctx context.Context, f found, replacer blob.Replacer) error {
	name := f.info.ID
	if f.info.Stored > maxWhole {
		return s.resealStream(ctx, f, replacer)
	}
	stored, err := s.inner.Get(ctx, name)
	if err != nil {
		return err
	}
	// Its base may be another one than when it was found, so that what is read now
	// counts.
	o, err := s.opener(f.id, name, stored)
	if err != nil {
		return blame(f.id, err)
	}
	content, err := o.openBody(stored[o.headSize():])
	if err != nil {
		return blame(f.id, err)
	}
	sealed, err := s.sealWhole(f.id, o.base, name, content)
	if err != nil {
		return fmt.Errorf("seal blob %s: %w", f.id, err)
	}
	if err := replacer.ReplaceFrom(ctx, name, bytes.NewReader(sealed), int64(len(sealed))); err != nil {
		return fmt.Errorf("replace sealed blob %s: %w", f.id, err)
	}
	return nil
}

// resealStream reads a large blob twice: once to learn its length and that it is
// sound, once to seal it.
func (s *Store) resealStream(ctx context.Context, f found, replacer blob.Replacer) error {
	r, err := s.Open(ctx, f.id)
	if err != nil {
		return err
	}
	size, err := io.Copy(io.Discard, r)
	if err = errors.Join(err, r.Close()); err != nil {
		return err
	}
	if r, err = s.Open(ctx, f.id); err != nil {
		return err
	}
	src, stored, err := s.sealing(f.id, f.base, f.info.ID, r, size)
	if err == nil {
		err = replacer.ReplaceFrom(ctx, f.info.ID, src, stored)
	}
	if err = errors.Join(err, r.Close()); err != nil {
		return fmt.Errorf("replace sealed blob %s: %w", f.id, err)
	}
	return nil
}
