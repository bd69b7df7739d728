package pack

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/kv"
)

// Walk visits everything in packs, as stored: every row, and of every blob its name and
// at most its first head bytes. It stops at the first error.
func (s *Store) Walk(ctx context.Context, head int64, row func(kv.Row) error, one func(name blob.ID, first []byte) error) error {
	return s.each(ctx, func(e *entry) error {
		if len(e.objects) == 0 {
			return nil
		}
		if err := s.walkEntry(ctx, e, head, row, one); err != nil {
			return fmt.Errorf("walk packs of %s: %w", e.id, err)
		}
		return nil
	})
}

func (s *Store) walkEntry(ctx context.Context, e *entry, head int64, row func(kv.Row) error, one func(blob.ID, []byte) error) error {
	c, err := s.contents(ctx, e)
	if err != nil {
		return err
	}
	for _, at := range c.rows {
		r, err := s.readRow(ctx, e, at)
		if err == nil {
			err = row(r)
		}
		if err != nil {
			return err
		}
	}
	for _, name := range c.order {
		first, err := s.firstBytes(ctx, e, c.blobs[name], head)
		if err == nil {
			err = one(name, first)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) firstBytes(ctx context.Context, e *entry, at placedBlob, head int64) ([]byte, error) {
	r, err := s.openRecord(ctx, e.objects[at.object], at.extent)
	if err != nil {
		return nil, err
	}
	first, err := io.ReadAll(io.LimitReader(r, head))
	return first, errors.Join(err, r.Close())
}
