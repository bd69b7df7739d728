package encrypted

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/stet-dev/stet/blob"
)

var (
	_ blob.Replacer = (*Store)(nil)
	_ blob.Arrivals = (*Store)(nil)
)

func (s *Store) replacer(ctx context.Context) (blob.Replacer, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	if s.opts.Replacer == nil || s.opts.WriteSeedForm {
		return nil, fmt.Errorf("replace sealed blobs: the store below cannot: %w", errors.ErrUnsupported)
	}
	return s.opts.Replacer, nil
}

// Replace implements blob.Replacer.
func (s *Store) Replace(ctx context.Context, blobs ...blob.Blob) error {
	r, err := s.replacer(ctx)
	if err != nil {
		return err
	}
	sealed := make([]blob.Blob, len(blobs))
	for i, b := range blobs {
		if sealed[i], err = s.sealBlob(b); err != nil {
			return fmt.Errorf("seal blob %s: %w", b.ID, err)
		}
	}
	return r.Replace(ctx, sealed...)
}

// ReplaceFrom implements blob.Replacer, for blobs without a base; the base in the
// envelope is not read here.
func (s *Store) ReplaceFrom(ctx context.Context, id blob.ID, content io.Reader, size int64) error {
	r, err := s.replacer(ctx)
	if err != nil {
		return err
	}
	name := s.sealedName(id)
	src, stored, err := s.sealing(id, blob.ID{}, name, content, size)
	if err == nil {
		err = r.ReplaceFrom(ctx, name, src, stored)
	}
	if err != nil {
		return fmt.Errorf("replace sealed blob %s: %w", id, err)
	}
	return nil
}

// Arrived implements blob.Arrivals. It skips blobs that cannot be opened and those in
// seed form.
func (s *Store) Arrived(ctx context.Context, mark string, limit int) ([]blob.Info, string, error) {
	if err := s.ready(ctx); err != nil {
		return nil, mark, err
	}
	if s.opts.Arrivals == nil {
		return nil, mark, fmt.Errorf("arrivals of sealed blobs: the store below has no order of arrival: %w", errors.ErrUnsupported)
	}
	names, next, err := s.opts.Arrivals.Arrived(ctx, mark, limit)
	if err != nil {
		return nil, mark, err
	}
	infos := make([]blob.Info, 0, len(names))
	for _, info := range names {
		f, err := s.identify(ctx, info)
		if err != nil {
			return nil, mark, err
		}
		if f != nil && f.err == nil && !f.seed {
			infos = append(infos, blob.Info{ID: f.id, Base: f.base, Stored: info.Stored})
		}
	}
	return infos, next, nil
}
