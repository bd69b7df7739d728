package pack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/stet-dev/stet/blob"
)

// SweepResult counts objects.
type SweepResult struct {
	Removed, Kept int64
	RemovedBytes  int64
}

// Sweep removes the objects that no archived conversation names and that are older than
// grace: leftovers of a killed archiving or removal. Archiving one conversation must not
// take longer than grace; 0 means a day. The keys of all old objects are held in
// memory.
func (s *Store) Sweep(ctx context.Context, grace time.Duration) (SweepResult, error) {
	if grace <= 0 {
		grace = 24 * time.Hour
	}
	limit := s.opts.Now().Add(-grace)
	old := make(map[string]int64)
	var result SweepResult
	// List the objects first, then the rows: an object named in between is either too
	// young to remove or was named before.
	err := s.objects.ListObjects(ctx, s.opts.Prefix, "", func(o blob.ObjectInfo) error {
		if o.Time.Before(limit) {
			old[o.Key] = o.Size
		} else {
			result.Kept++
		}
		return nil
	})
	if err != nil {
		return result, fmt.Errorf("sweep packs: %w", err)
	}
	err = s.each(ctx, func(e *entry) error {
		for _, o := range e.objects {
			if _, ok := old[o.key]; ok {
				delete(old, o.key)
				result.Kept++
			}
		}
		return nil
	})
	if err != nil {
		return result, fmt.Errorf("sweep packs: %w", err)
	}
	if s.driver.Unfinished != nil {
		gone, err := s.driver.Unfinished(ctx, s.opts.Prefix, limit)
		result.Removed += gone.Removed
		result.RemovedBytes += gone.RemovedBytes
		if err != nil {
			return result, fmt.Errorf("sweep packs: %w", err)
		}
	}
	for key, size := range old {
		if err := s.objects.RemoveObjects(ctx, key); err != nil {
			return result, fmt.Errorf("sweep packs: %w", err)
		}
		result.Removed++
		result.RemovedBytes += size
	}
	return result, nil
}

// Verify checks the packs of a conversation: that every object exists with a complete
// and consistent index, that lists find the rows they need and, with data, that every
// record is undamaged.
func (s *Store) Verify(ctx context.Context, id string, data bool) error {
	for range looks {
		e, err := s.entry(ctx, id)
		if err != nil {
			return err
		}
		if e == nil {
			return fmt.Errorf("%s: %w", id, ErrNotArchived)
		}
		err = s.verify(ctx, e, data)
		if errors.Is(err, errGone) {
			err = s.gone(ctx, e, err)
			if err == nil {
				continue
			}
		}
		if err != nil {
			return fmt.Errorf("verify packs of %s: %w", id, err)
		}
		return nil
	}
	return fmt.Errorf("%s: %w", id, ErrNotArchived)
}

func (s *Store) verify(ctx context.Context, e *entry, data bool) error {
	s.drop(e) // read from the bucket, not from memory
	for _, o := range e.objects {
		x, err := s.readIndex(ctx, o, s.readRange)
		if err != nil {
			return err
		}
		if !data {
			continue
		}
		for _, r := range x.rows {
			if _, err := s.read(ctx, o, r.extent); err != nil {
				return fmt.Errorf("row %q: %w", r.key, err)
			}
		}
		for _, b := range x.blobs {
			if err := s.verifyBlob(ctx, o, b); err != nil {
				return fmt.Errorf("blob %s: %w", b.name, err)
			}
		}
	}
	c, err := s.contents(ctx, e)
	if err != nil {
		return err
	}
	if uint64(len(c.rows)) != e.rows || uint64(len(c.blobs)) != e.blobs {
		return damaged("%d rows and %d blobs, want %d and %d", len(c.rows), len(c.blobs), e.rows, e.blobs)
	}
	for _, b := range c.blobs {
		if _, ok := c.blobs[b.base]; !ok && !b.base.IsZero() {
			return damaged("blob %s needs %s, which is not in the pack", b.name, b.base)
		}
	}
	return s.verifyShadows(ctx, e, c)
}

func (s *Store) verifyBlob(ctx context.Context, o object, b blobItem) error {
	if b.length < streamFrom {
		_, err := s.read(ctx, o, b.extent)
		return err
	}
	r, err := s.openRecord(ctx, o, b.extent)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, &verifier{r: r, want: b.sum, object: o.key})
	return errors.Join(err, r.Close())
}
