package compressed

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/stet-dev/stet/blob"
)

// planner chooses the records for the blobs of one Put.
type planner struct {
	resolver                  // staged are the records of earlier blobs of the same Put
	hints    bool             // follow hints; without, only extensions become deltas
	later    bool             // leave compression and far comparisons to Compact
	far      *far             // the store below, if later
	asked    map[blob.ID]bool // blobs already looked up in the store below
	turns    []turn           // for Compact
}

const (
	// nearReads is how many reads of the store below one Put makes to compare. Small
	// checkpoints stay within it and are stored as tightly as possible at once. In a
	// checkpoint of a thousand files, a new process spent two fifths of its time on
	// these reads.
	nearReads = 32
	// nearFrom is the size from which content is always compared: writing it costs
	// more than reading a similar blob.
	nearFrom = 64 << 10
)

// errFar means that a comparison is deferred.
var errFar = errors.New("too far to compare with now")

// far counts reads of the store below and refuses them while it is shut.
type far struct {
	blob.Reader
	reads int
	shut  bool
}

func (f *far) Get(ctx context.Context, id blob.ID) ([]byte, error) {
	if f.shut {
		return nil, errFar
	}
	f.reads++
	return f.Reader.Get(ctx, id)
}

// planned is a record with its blob.
type planned struct {
	id blob.ID
	*record
}

// planAll returns the records to store for blobs, one for each ID.
func (p *planner) planAll(ctx context.Context, blobs []blob.Blob) (records []planned, err error) {
	if !p.later {
		// Compressing now takes long; hold nothing meanwhile that other callers need.
		return p.planEach(ctx, blobs)
	}
	err = blob.ReadMany(ctx, p.inner, func(r blob.Reader) error {
		p.far = &far{Reader: r}
		p.below = p.far
		defer func() { p.below, p.far = p.inner, nil }() // the planner outlives r
		records, err = p.planEach(ctx, blobs)
		return err
	})
	return records, err
}

func (p *planner) planEach(ctx context.Context, blobs []blob.Blob) ([]planned, error) {
	held, err := p.held(ctx, blobs)
	if err != nil {
		return nil, err
	}
	seen := make(map[blob.ID]bool, len(blobs))
	records := make([]planned, 0, len(blobs))
	for i := range blobs {
		b := &blobs[i]
		if seen[b.ID] {
			continue
		}
		seen[b.ID] = true
		r, err := p.plan(ctx, b, held[i])
		if err != nil {
			return nil, err
		}
		if !held[i] {
			p.staged[b.ID] = r
		}
		records = append(records, planned{b.ID, r})
	}
	return records, nil
}

// held checks in one call which blobs are already stored: all of them if there are no
// hints, else those that would be compressed or compared in vain. An extension costs
// less than the check.
func (p *planner) held(ctx context.Context, blobs []blob.Blob) ([]bool, error) {
	held := make([]bool, len(blobs))
	var ids []blob.ID
	var asked []int
	for i := range blobs {
		large := len(blobs[i].Data) >= askFrom && !p.later
		compared := !blobs[i].Like.IsZero()
		if !p.hints || blobs[i].Keep == 0 && (large || compared) {
			ids, asked = append(ids, blobs[i].ID), append(asked, i)
		}
	}
	if len(ids) == 0 {
		return held, nil
	}
	answers, err := p.below.Has(ctx, ids...)
	if err != nil {
		return nil, err
	}
	p.asked = make(map[blob.ID]bool, len(ids))
	for k, i := range asked {
		held[i] = answers[k]
		p.asked[ids[k]] = true
	}
	return held, nil
}

// plan returns the record to store for a blob.
func (p *planner) plan(ctx context.Context, b *blob.Blob, held bool) (*record, error) {
	var r *record
	var err error
	switch {
	case b.Keep > 0:
		r, err = p.extend(ctx, b)
		if held && errors.Is(err, blob.ErrNotFound) {
			// It is already stored, although the blob it extends is gone.
			return p.fetch(ctx, b.ID)
		}
	case held: // no need to compress: the store below has it in some form
		r = &record{kind: kindRaw, size: int64(len(b.Data)), payload: b.Data}
	case p.hints && !b.Like.IsZero() && b.Like != b.ID:
		r, err = p.difference(ctx, b)
	default:
		r = p.plain(b.Data)
	}
	if err != nil {
		return nil, err
	}
	r.local = b.LocalOnly
	return r, nil
}

// plain returns the record of a whole content.
func (p *planner) plain(data []byte) *record {
	if !p.later {
		if small, ok := p.codec.shrink(data); ok {
			return &record{kind: kindZstd, size: int64(len(data)), payload: small}
		}
	}
	return &record{kind: kindRaw, size: int64(len(data)), payload: data}
}

// lookup returns a record, possibly without its payload.
func (p *planner) lookup(ctx context.Context, id blob.ID) (*record, error) {
	if r := p.cache.get(id); r != nil && p.staged[id] == nil {
		return r, nil
	}
	return p.fetch(ctx, id)
}

// extend turns "the first Keep bytes of Like, then Data" into the same
// statement about the ancestor that is due as base: each record on the way
// there holds the bytes that it added, and these become part of the literal.
func (p *planner) extend(ctx context.Context, b *blob.Blob) (*record, error) {
	cur, err := p.lookup(ctx, b.Like)
	if err != nil {
		return nil, fmt.Errorf("read what %s extends: %w", b.ID, err)
	}
	if b.Keep > cur.size {
		return nil, fmt.Errorf("%w: %s keeps %d bytes of %s, which has %d", blob.ErrMismatch, b.ID, b.Keep, b.Like, cur.size)
	}
	if b.Keep+int64(len(b.Data)) > p.opts.MaxBlob {
		return nil, p.tooLarge(b.ID)
	}
	position := cur.position + 1
	if position > maxPosition || (cur.local && !b.LocalOnly) || b.Like == b.ID {
		return p.whole(ctx, b)
	}
	id, keep := b.Like, b.Keep
	pieces := [][]byte{b.Data} // of the literal, last first
	var over []blob.ID
	for steps := 0; cur.position > target(position); steps++ {
		if steps == maxSteps {
			return p.whole(ctx, b)
		}
		if keep > cur.prefix {
			added, err := p.span(ctx, id, cur, cur.prefix, keep)
			if err != nil {
				return nil, err
			}
			pieces, keep = append(pieces, added), cur.prefix
		}
		over = append(over, id)
		next, err := p.lookup(ctx, cur.base)
		if err != nil {
			return nil, leansOn(id, cur.base, err)
		}
		id, cur = cur.base, next
	}
	if id == b.ID || cur.kind == kindHinted { // returning content cannot be its own base
		return p.whole(ctx, b)
	}
	literal := joinReversed(pieces)
	if keep == 0 {
		return p.plain(literal), nil
	}
	p.passedOver(b.ID, over)
	return p.delta(position, id, keep, 0, literal), nil
}

// whole loads the full content of an extension that cannot be a delta.
func (p *planner) whole(ctx context.Context, b *blob.Blob) (*record, error) {
	cur, err := p.lookup(ctx, b.Like)
	if err != nil {
		return nil, fmt.Errorf("read what %s extends: %w", b.ID, err)
	}
	kept, err := p.span(ctx, b.Like, cur, 0, b.Keep)
	if err != nil {
		return nil, err
	}
	return p.plain(append(bytes.Clone(kept), b.Data...)), nil
}

// span returns bytes of a blob's content, from its literal if that holds them. They
// belong to the record.
func (p *planner) span(ctx context.Context, id blob.ID, r *record, from, to int64) ([]byte, error) {
	if r.hollow {
		full, err := p.fetch(ctx, id)
		if err != nil {
			return nil, err
		}
		r = full
	}
	if r.isExtension() && from >= r.prefix && to <= r.size {
		literal, err := p.literal(id, r)
		if err != nil {
			return nil, err
		}
		return literal[from-r.prefix : to-r.prefix], nil
	}
	steps := maxSteps
	data, err := p.resolve(ctx, id, r, &steps)
	if err != nil {
		return nil, err
	}
	if int64(len(data)) < to || from > to {
		return nil, blob.Corrupt(id, "%d bytes, need %d", len(data), to)
	}
	return data[from:to], nil
}

// joinReversed joins pieces that were collected from the last to the first.
func joinReversed(pieces [][]byte) []byte {
	if len(pieces) == 1 {
		return pieces[0]
	}
	n := 0
	for _, piece := range pieces {
		n += len(piece)
	}
	out := make([]byte, n)
	for _, piece := range pieces {
		n -= len(piece)
		copy(out[n:], piece)
	}
	return out
}

// delta returns the record of a literal between two parts of a base.
func (p *planner) delta(position uint64, base blob.ID, prefix, suffix int64, literal []byte) *record {
	r := &record{
		kind: kindDelta, base: base, position: position, prefix: prefix, suffix: suffix,
		literal: int64(len(literal)), size: prefix + int64(len(literal)) + suffix, payload: literal,
	}
	if !p.later {
		p.codec.shrinkLiteral(r, literal)
	}
	return r
}

func (c *codec) shrinkLiteral(r *record, literal []byte) {
	if small, ok := c.shrink(literal); ok {
		r.kind, r.payload = kindDeltaZstd, small
	}
}
