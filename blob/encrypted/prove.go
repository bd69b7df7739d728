package encrypted

import (
	"context"
	"errors"
	"fmt"

	"github.com/stet-dev/stet/blob"
)

// absent is the answer for a missing blob, once the keyring is proved right.
func (s *Store) absent(ctx context.Context, id blob.ID) error {
	if err := s.prove(ctx); err != nil {
		return err
	}
	return blob.NotFound(id)
}

// samples is how many stored blobs prove checks before it gives up.
const samples = 16

var errEnough = errors.New("enough")

// prove guards against a keyring of another store: names depend on it, so the store
// would look empty. It reads a few headers, once, when the first blob is not found.
// If there are envelopes and none uses a key in the ring, the ring is wrong. It needs
// Options.Lister.
func (s *Store) prove(ctx context.Context) error {
	if s.opts.Lister == nil || s.opts.Shared || s.ring == nil || s.proven.Load() {
		return nil
	}
	names := make([]blob.ID, 0, samples)
	err := s.opts.Lister.List(ctx, blob.ID{}, func(i blob.Info) error {
		if names = append(names, i.ID); len(names) == samples {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errors.ErrUnsupported) {
		s.proven.Store(true)
		return nil
	}
	if err != nil && !errors.Is(err, errEnough) {
		return fmt.Errorf("look for a stored blob: %w", err)
	}
	var foreign error
	for _, name := range names {
		known, err := s.knowsKeyOf(ctx, name)
		if err != nil {
			return err
		}
		if known == nil {
			foreign = nil
			break
		}
		if errors.Is(known, blob.ErrWrongKey) && foreign == nil {
			foreign = fmt.Errorf("the keyring does not belong to this store: %w", known)
		}
	}
	if foreign == nil && len(names) > 0 {
		s.proven.Store(true)
	}
	return foreign
}

// knowsKeyOf returns first why the key of a stored blob is unknown, and second why it
// could not be determined.
func (s *Store) knowsKeyOf(ctx context.Context, name blob.ID) (known, failed error) {
	head, err := s.readStored(ctx, name)
	if err != nil {
		if errors.Is(err, blob.ErrNotFound) || errors.Is(err, blob.ErrCorrupt) {
			return err, nil
		}
		return nil, fmt.Errorf("read head of stored blob %s: %w", name, err)
	}
	h, err := parseHeader(head)
	if err != nil {
		return err, nil
	}
	_, err = s.key(h.key)
	return err, nil
}
