package pack

import (
	"context"
	"errors"
	"io"

	"github.com/stet-dev/stet/blob"
)

// Blobs returns the driver's blobs together with those of packs. It streams if the driver
// does. Listing, sweeping and replacing work on the driver: packs are not listed, and
// nothing in them changes.
func (s *Store) Blobs() blob.Store { return &blobLayer{s: s} }

// blobLayer is the driver's store with packs behind it.
type blobLayer struct{ s *Store }

var _ blob.Streamer = (*blobLayer)(nil)

// looks is how often a reader tries again if a conversation was brought back
// meanwhile.
const looks = 4

// Get implements blob.Store.
func (b *blobLayer) Get(ctx context.Context, id blob.ID) (data []byte, err error) {
	err = b.either(ctx, id, func() error {
		data, err = b.s.get(ctx, id)
		return err
	}, func(o object, at placedBlob) error {
		data, err = b.s.read(ctx, o, at.extent)
		return err
	})
	return data, err
}

// Open implements blob.Streamer.
func (b *blobLayer) Open(ctx context.Context, id blob.ID) (r io.ReadCloser, err error) {
	err = b.either(ctx, id, func() error {
		r, err = b.s.openBlob(ctx, id)
		return err
	}, func(o object, at placedBlob) error {
		r, err = b.s.openRecord(ctx, o, at.extent)
		return err
	})
	return r, err
}

// either reads a blob from the driver or, if it lacks the blob, from a pack.
func (b *blobLayer) either(ctx context.Context, id blob.ID, driver func() error, pack func(object, placedBlob) error) error {
	for range looks {
		err := driver()
		if !errors.Is(err, blob.ErrNotFound) {
			return err
		}
		e, at, findErr := b.s.find(ctx, id)
		if findErr != nil {
			return findErr
		}
		if e == nil {
			found, againErr := b.s.lookAgain(ctx)
			if againErr != nil {
				return againErr
			}
			if !found {
				return err
			}
			continue
		}
		err = pack(e.objects[at.object], at)
		if !errors.Is(err, errGone) {
			return err
		}
		if err := b.s.gone(ctx, e, err); err != nil {
			return err
		}
	}
	return driver()
}

// Has implements blob.Store.
func (b *blobLayer) Has(ctx context.Context, ids ...blob.ID) ([]bool, error) {
	has, err := b.s.blobs.Has(ctx, ids...)
	if err != nil {
		return nil, err
	}
	return has, b.inPacks(ctx, ids, has)
}

// inPacks looks in packs for blobs that the driver lacks.
func (b *blobLayer) inPacks(ctx context.Context, ids []blob.ID, has []bool) error {
	for i, id := range ids {
		if has[i] {
			continue
		}
		e, _, err := b.s.find(ctx, id)
		if err != nil && !errors.Is(err, ErrDamaged) { // a damaged blob is better put again
			return err
		}
		has[i] = e != nil
	}
	return nil
}

// Put implements blob.Store. A driver refuses a blob without its base, and an
// extension without the blob it extends. If a pack has those, they are copied back
// first.
func (b *blobLayer) Put(ctx context.Context, blobs ...blob.Blob) error {
	err := b.s.blobs.Put(ctx, blobs...)
	if !errors.Is(err, blob.ErrNotFound) {
		return err
	}
	var needed []blob.ID
	for _, one := range blobs {
		if !one.Base.IsZero() {
			needed = append(needed, one.Base)
		}
		if one.Keep > 0 {
			needed = append(needed, one.Like)
		}
	}
	if restored, restoreErr := b.s.restore(ctx, needed); restoreErr != nil || !restored {
		return errors.Join(err, restoreErr)
	}
	return b.s.blobs.Put(ctx, blobs...)
}

// PutFrom implements blob.Streamer.
func (b *blobLayer) PutFrom(ctx context.Context, id blob.ID, r io.Reader, size int64) error {
	return blob.PutFrom(ctx, b.s.blobs, id, r, size)
}

// Flush implements blob.Store.
func (b *blobLayer) Flush(ctx context.Context) error { return b.s.blobs.Flush(ctx) }

// restore copies blobs that the driver lacks out of packs, with all their bases, and
// reports whether it found any.
func (s *Store) restore(ctx context.Context, names []blob.ID) (restored bool, err error) {
	have, err := s.blobs.Has(ctx, names...)
	if err != nil {
		return false, err
	}
	for i, name := range names {
		if have[i] {
			continue
		}
		e, _, err := s.find(ctx, name)
		if err != nil {
			return restored, err
		}
		if e == nil {
			continue
		}
		c, err := s.contents(ctx, e)
		if err == nil {
			err = s.putBack(ctx, e, c, []blob.ID{name})
		}
		if errors.Is(err, errGone) {
			if err = s.gone(ctx, e, err); err == nil {
				return true, nil // it is back: the caller tries again
			}
		}
		if err != nil {
			return restored, err
		}
		restored = true
	}
	return restored, nil
}
