package compressed

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/stet-dev/stet/blob"
)

// compactBytes is how much is replaced in one step: enough to share a sync, and little
// enough not to block a writer for long.
const compactBytes = 1 << 20

// Compact compresses those of the given blobs, as the store below lists them, that are
// stored uncompressed, compares those that were put with a hint, and returns how many
// bytes that saved. A blob that a hint names should be compacted first, which is the case
// in the order of arrival. Compact may run alongside all other calls and in several
// processes, and may be stopped at any time. Blobs that are already compacted or gone
// cost one look each; damaged ones do not hold up the others. below exchanges blobs of
// the store below.
func (s *Store) Compact(ctx context.Context, below blob.Replacer, blobs []blob.Info) (saved int64, err error) {
	b := &compacting{replacer: below}
	b.resolver = resolver{Store: s, below: s.inner, staged: make(map[blob.ID]*record)}
	for _, info := range blobs {
		if info.Stored <= minAlone && (info.Stored < leastHinted || !info.Base.IsZero()) {
			continue
		}
		if err := b.add(ctx, info); err != nil && !staysAsItIs(err) {
			return b.saved, fmt.Errorf("compact blob %s: %w", info.ID, err)
		}
	}
	if err := b.flush(ctx); err != nil {
		return b.saved, err
	}
	s.turns.add(b.turns)
	return b.saved, b.turnSome(ctx)
}

// staysAsItIs reports whether an error concerns one blob only: the blob is gone, was
// replaced between two reads (and will arrive again), or is damaged, which is left to
// reads and checks to report.
func staysAsItIs(err error) bool {
	return errors.Is(err, blob.ErrNotFound) || errors.Is(err, blob.ErrCorrupt) || errors.Is(err, blob.ErrMismatch)
}

// leastHinted is the smallest size of a record with a hint.
const leastHinted = 1 + blob.IDSize + leastLeaning

// compacting collects records for one exchange. It plans hinted blobs like a Put that
// compresses at once, with the records to be exchanged as staged ones.
type compacting struct {
	planner
	replacer blob.Replacer
	records  []blob.Blob
	bytes    int
	gain     int64 // of records
	saved    int64 // of those that are exchanged
}

func (b *compacting) add(ctx context.Context, info blob.Info) error {
	if info.Stored > streamFrom && info.Base.IsZero() {
		return b.stream(ctx, info)
	}
	return b.addWhole(ctx, info)
}

func (b *compacting) addWhole(ctx context.Context, info blob.Info) error {
	data, err := b.inner.Get(ctx, info.ID)
	if err != nil {
		return err
	}
	r, err := b.smaller(ctx, info.ID, data)
	if err != nil || r == nil {
		return err
	}
	one := blob.Blob{ID: info.ID, Data: r.encode(), Base: r.base, LocalOnly: r.local, Given: true}
	b.records, b.bytes = append(b.records, one), b.bytes+len(one.Data)
	b.gain += int64(len(data) - len(one.Data))
	if b.bytes >= compactBytes {
		return b.flush(ctx)
	}
	return nil
}

// smaller returns the record of some stored bytes with its payload compressed, or
// nil if there is nothing to gain.
func (b *compacting) smaller(ctx context.Context, id blob.ID, data []byte) (*record, error) {
	r, err := parse(id, data, b.opts.MaxBlob)
	if err != nil {
		return nil, nil // see staysAsItIs
	}
	switch r.kind {
	case kindRaw:
		small, ok := b.codec.shrink(r.payload)
		if !ok {
			return nil, nil
		}
		r.kind, r.payload = kindZstd, small
		return r, nil
	case kindDelta:
		return b.smallerDelta(ctx, id, r)
	case kindHinted:
		return b.decided(ctx, id, r)
	}
	return nil, nil
}

// decided returns the new form of a record that waited for its comparison. Whatever the
// hint is worth, the record does not wait again.
func (b *compacting) decided(ctx context.Context, id blob.ID, hinted *record) (*record, error) {
	r, err := b.difference(ctx, &blob.Blob{ID: id, Data: hinted.payload, Like: hinted.like, LocalOnly: hinted.local})
	if err != nil {
		return nil, err
	}
	r.local = hinted.local
	b.staged[id] = r
	return r, nil
}

func (b *compacting) smallerDelta(ctx context.Context, id blob.ID, r *record) (*record, error) {
	literal := r.payload
	if len(literal) < minAlone {
		return nil, nil
	}
	b.codec.shrinkLiteral(r, literal)
	if len(r.payload) >= dictFrom {
		base, err := b.content(ctx, r.base)
		if err != nil {
			return nil, leansOn(id, r.base, err)
		}
		if r.prefix+r.suffix <= int64(len(base)) {
			if err := b.codec.shrinkMore(r, base[r.prefix:int64(len(base))-r.suffix], literal); err != nil {
				return nil, err
			}
		}
	}
	if r.kind == kindDelta {
		return nil, nil
	}
	return r, nil
}

func (b *compacting) flush(ctx context.Context) error {
	if len(b.records) == 0 {
		return nil
	}
	if err := b.replacer.Replace(ctx, b.records...); err != nil {
		return err
	}
	b.saved += b.gain
	decided := b.staged
	b.records, b.bytes, b.gain, b.staged = nil, 0, 0, make(map[blob.ID]*record)
	return b.standAlone(ctx, decided)
}

// standAlone compacts the decided records that the exchange skipped: the base was removed
// after the comparison, is kept elsewhere, or leans on the blob that should lean on it.
// Without this they would wait forever.
func (b *compacting) standAlone(ctx context.Context, decided map[blob.ID]*record) error {
	var blobs []blob.Blob
	for id, r := range decided {
		if !r.isDelta() {
			continue
		}
		data, err := b.inner.Get(ctx, id)
		if err != nil && staysAsItIs(err) {
			continue
		}
		if err != nil {
			return err
		}
		now, err := parse(id, data, b.opts.MaxBlob)
		if err != nil || now.kind != kindHinted {
			continue
		}
		plain := b.plain(now.payload)
		plain.local = now.local
		one := blob.Blob{ID: id, Data: plain.encode(), LocalOnly: plain.local, Given: true}
		b.saved += int64(len(r.payload) - len(one.Data)) // instead of the expected gain
		blobs = append(blobs, one)
	}
	if len(blobs) == 0 {
		return nil
	}
	return b.replacer.Replace(ctx, blobs...)
}

// stream compacts content that is not held in memory.
func (b *compacting) stream(ctx context.Context, info blob.Info) (err error) {
	src, err := blob.Open(ctx, b.inner, info.ID)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	content := bufio.NewReaderSize(src, sampleSize)
	first, err := content.ReadByte()
	if err == nil && first&^flagLocal == kindHinted {
		return b.addWhole(ctx, info)
	}
	if err != nil || first&^flagLocal != kindRaw {
		return err
	}
	if pays, err := b.pays(content); err != nil || !pays {
		return err
	}
	size, err := b.rawSize(ctx, info.ID)
	if err != nil {
		return err
	}
	return b.deflated(ctx, kindStream|first&flagLocal, info.ID, content, size, func(r io.Reader, stored int64) error {
		if stored > size {
			return nil
		}
		err := b.replacer.ReplaceFrom(ctx, info.ID, r, stored)
		if err == nil {
			b.saved += size + 1 - stored
		}
		return err
	})
}

// rawSize reads a raw record once: its size in the store below may be larger than its
// content.
func (b *compacting) rawSize(ctx context.Context, id blob.ID) (int64, error) {
	src, err := blob.Open(ctx, b.inner, id)
	if err != nil {
		return 0, err
	}
	n, err := io.Copy(io.Discard, src)
	return n - 1, errors.Join(err, src.Close())
}
