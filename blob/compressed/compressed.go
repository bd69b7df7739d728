// Package compressed keeps blobs small in the store below: as zstd, or as the
// difference from a stored blob.
//
// A blob that is put with a Like hint is stored as a delta if that is smaller. A blob
// that extends another (Keep > 0, see blob.Builder) is stored as its new bytes,
// without reading the old ones, so a list of 10,000 entries grows by one at the cost
// of about one entry. A delta leans on a base, which the store below records
// (blob.Info.Base) and must not remove first. Bases are chosen so that a chain of n
// saves is read in at most 4·log4(n) steps. Compact lets the earlier blobs of a chain lean
// on later ones, so that content that only grows is stored about once; see
// docs/format/compressed.md.
//
//	store := blob.Checked(compressed.New(inner, nil))
//	err := store.Put(ctx, blob.Blob{ID: id, Data: edited, Like: original})
//	data, err := store.Get(ctx, id)
//
// Stored bytes that would inflate beyond the limits are refused before they take
// memory. blob.Checked verifies the content. An encrypting layer belongs below this
// one.
package compressed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/stet-dev/stet/blob"
)

// Options tune a store; the zero value and nil give the defaults.
type Options struct {
	// Level is the effort of compression from 1 (fast) to 4 (small). 0 means 2.
	Level int
	// MaxBlob is the largest content that Put takes and Get inflates; larger
	// blobs must be streamed with Open and PutFrom. 0 means 64 MiB.
	MaxBlob int64
	// CacheBytes limits the memory for recently read or written records, so that
	// extending or editing a blob again needs no read. 0 means 2 MiB, negative none.
	CacheBytes int64
	// Recall, if set, returns the content of a blob that is in memory, for example in
	// a cache above, else nil. A difference to it then needs no read, on the way in and
	// on the way out. It must not call this store, and the returned slice must not be
	// changed.
	Recall func(blob.ID) []byte
	// Later, if set, defers compression: contents, and the new part of a delta, are
	// stored as they are, Later is called with their number of bytes, and Compact
	// compresses them when there is time. If one Put has many contents, most are not even
	// compared with the blobs that they resemble unless those are at hand: Compact does
	// that too. Later needs a blob.Replacer for the store below.
	Later func(bytes int64)
}

func (o *Options) withDefaults() Options {
	var d Options
	if o != nil {
		d = *o
	}
	if d.Level <= 0 {
		d.Level = 2
	}
	d.Level = min(d.Level, 4)
	if d.MaxBlob <= 0 {
		d.MaxBlob = 64 << 20
	}
	if d.CacheBytes == 0 {
		d.CacheBytes = 2 << 20
	}
	return d
}

// Store is a layer that compresses.
type Store struct {
	inner blob.Store
	opts  Options
	codec *codec
	cache *cache
	turns *turns
	reads int // limit of comparison reads from the store below in one Put; see nearReads
}

var (
	_ blob.Store    = (*Store)(nil)
	_ blob.Streamer = (*Store)(nil)
)

// New returns a store that keeps compressed blobs in inner.
func New(inner blob.Store, opts *Options) *Store {
	o := opts.withDefaults()
	return &Store{inner: inner, opts: o, codec: newCodec(o.Level, o.MaxBlob), cache: newCache(o.CacheBytes), turns: &turns{}, reads: nearReads}
}

// Get returns the content of a blob, assembled from its chain of deltas.
func (s *Store) Get(ctx context.Context, id blob.ID) ([]byte, error) {
	return s.get(ctx, s.inner, id)
}

// Put stores blobs, each in the smallest form found. Stored blobs are not compressed
// again. They are passed down in a form that costs nothing to make, so that the store
// below sees that they are wanted and a running collector keeps them.
func (s *Store) Put(ctx context.Context, blobs ...blob.Blob) error {
	if err := ctx.Err(); err != nil || len(blobs) == 0 {
		return err
	}
	for i := range blobs {
		if err := s.checkSize(&blobs[i]); err != nil {
			return err
		}
	}
	err := s.put(ctx, blobs, true)
	if errors.Is(err, blob.ErrNotFound) {
		// A base may have been removed after the cache or a hint named it, and the
		// store below refuses a blob without its base. Without cache and hints, only
		// blobs that cannot be stored at all fail.
		s.cache.purge()
		err = s.put(ctx, blobs, false)
	}
	return err
}

func (s *Store) checkSize(b *blob.Blob) error {
	if b.Keep < 0 {
		return fmt.Errorf("%w: %s keeps %d bytes of %s", blob.ErrMismatch, b.ID, b.Keep, b.Like)
	}
	if int64(len(b.Data)) > s.opts.MaxBlob {
		return s.tooLarge(b.ID)
	}
	return nil
}

func (s *Store) tooLarge(id blob.ID) error {
	return fmt.Errorf("%w: %s has more than %d bytes", blob.ErrTooLarge, id, s.opts.MaxBlob)
}

// askFrom is the size from which checking whether a blob is stored costs less than
// compressing it in vain; the store below drops what it already has.
const askFrom = 16 << 10

// put encodes all blobs and passes them down in one call, except those that are too
// large for that.
func (s *Store) put(ctx context.Context, blobs []blob.Blob, hints bool) error {
	p := &planner{resolver: resolver{Store: s, below: s.inner, staged: make(map[blob.ID]*record, len(blobs))}, hints: hints, later: s.opts.Later != nil}
	records, err := p.planAll(ctx, blobs)
	if err != nil {
		return err
	}
	below := make([]blob.Blob, 0, len(records))
	for _, one := range records {
		if p.later && one.kind == kindRaw && one.size >= largeRaw && !one.local {
			if err := s.putLarge(ctx, one.id, one.record); err != nil {
				return err
			}
			continue
		}
		below = append(below, blob.Blob{ID: one.id, Data: one.encode(), Base: one.base, LocalOnly: one.local, Given: true})
	}
	if len(below) > 0 {
		if err := s.inner.Put(ctx, below...); err != nil {
			return err
		}
	}
	s.turns.add(p.turns)
	var later int64
	for id, r := range p.staged {
		if r.isDelta() || p.asked[id] && !p.later {
			// Whether the store below took other whole copies, or has them in another
			// form, is unknown. With deferred compression a Has call does not help:
			// another process may have put one that becomes a delta.
			s.cache.add(id, r)
		}
		if r.kind == kindHinted || (r.kind == kindRaw || r.kind == kindDelta) && len(r.payload) >= minAlone {
			later += int64(len(r.payload))
		}
	}
	if p.later && later > 0 {
		s.opts.Later(later)
	}
	return nil
}

// largeRaw is the size from which uncompressed content is passed down as a stream:
// another copy, one byte longer, would cost more than the rest of the work.
const largeRaw = 128 << 10

func (s *Store) putLarge(ctx context.Context, id blob.ID, r *record) error {
	record := io.MultiReader(bytes.NewReader([]byte{kindRaw}), bytes.NewReader(r.payload))
	return blob.PutFrom(ctx, s.inner, id, record, 1+r.size)
}

// Has implements blob.Store.
func (s *Store) Has(ctx context.Context, ids ...blob.ID) ([]bool, error) {
	return s.inner.Has(ctx, ids...)
}

// Flush implements blob.Store.
func (s *Store) Flush(ctx context.Context) error { return s.inner.Flush(ctx) }
