// Package compressed keeps blobs small in the store below: as zstd, or as the
// difference to a blob that is stored already.
//
// A blob that is put with a Like hint is stored as a delta where that pays. A
// blob that extends another (Keep > 0, see blob.Builder) is stored as its new
// bytes, without anybody reading or holding the old ones, so that a list of
// 10,000 entries grows by one at the price of about one entry. A delta leans on
// a base, which the store below records (blob.Info.Base) and must not remove
// first. Bases are chosen so that a chain of n saves is read in at most
// 3·log4(n) steps; see docs/format/compressed.md.
//
//	store := blob.Checked(compressed.New(inner, nil))
//	err := store.Put(ctx, blob.Blob{ID: id, Data: edited, Like: original})
//	data, err := store.Get(ctx, id)
//
// Stored bytes that would inflate beyond the limits are refused before they
// take memory. Whether bytes are the right ones is for blob.Checked to say, and
// a layer that encrypts belongs below this one.
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
	// CacheBytes bounds the memory for records that were lately read or written,
	// so that extending or editing a blob again needs no read. 0 means 2 MiB,
	// negative none.
	CacheBytes int64
	// Recall, if set, returns the content of a blob that somebody has at hand, such as
	// a cache above, else nil. Then a difference to it needs no read. It must not call
	// this store, and nobody may change what it returned.
	Recall func(blob.ID) []byte
	// Later, if set, puts compression off: contents, and what is new in a delta, are
	// stored as they are, Later is told how many bytes, and Settle compresses them
	// when there is time. Of many contents in one Put, most are not even compared
	// with what they are like, unless that is at hand: Settle does that too. The store
	// below must be a blob.Replacer.
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
	reads int // from the store below, to compare with, in one Put; see nearReads
}

var (
	_ blob.Store    = (*Store)(nil)
	_ blob.Streamer = (*Store)(nil)
)

// New returns a store that keeps compressed blobs in inner.
func New(inner blob.Store, opts *Options) *Store {
	o := opts.withDefaults()
	return &Store{inner: inner, opts: o, codec: newCodec(o.Level, o.MaxBlob), cache: newCache(o.CacheBytes), reads: nearReads}
}

// Get returns the content of a blob, put together from its chain of deltas.
func (s *Store) Get(ctx context.Context, id blob.ID) ([]byte, error) {
	from := resolver{Store: s, below: s.inner}
	data, err := from.content(ctx, id)
	if errors.Is(err, blob.ErrCorrupt) {
		// A collector may have taken what it leans on, and the blob with it, after that was
		// read; or it was put anew, in another form. Damage is there a second time.
		return from.content(ctx, id)
	}
	return data, err
}

// Put stores blobs, each in the smallest form that it found. Blobs that are
// stored already are not compressed again; they are only handed down in a form
// that costs nothing to make, so that the store below sees that they are wanted
// and a collector that is running keeps them.
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
		// A base may have gone since the cache or a hint told of it: the store below
		// takes nothing whose base it lacks. Without either, only blobs that nobody can
		// store any more still fail.
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

// askFrom is the size from which asking whether a blob is stored costs less than
// compressing it at once and in vain; the store below drops what it has.
const askFrom = 16 << 10

// put encodes all blobs and hands them down in one call, but for those that are
// too large for that.
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
	var later int64
	for id, r := range p.staged {
		if r.isDelta() || p.asked[id] && !p.later {
			// Of other whole copies it is not known whether the store below took them or
			// has them in another form; where Settle works, even if it was asked before:
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

// largeRaw is the size from which a content that is stored as it is goes down as
// a stream: another copy of it, one byte longer, would cost more than the rest of
// the way.
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
