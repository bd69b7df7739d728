package compressed

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math/bits"
	"sync"

	"github.com/stet-dev/stet/blob"
)

const (
	// maxDict bounds what serves as dictionary and what is compressed with it.
	maxDict = 1 << 20
	// deltaHeader is about what a delta adds to its literal.
	deltaHeader = 48
	// leastLeaning is the least whole copy that a delta is tried instead of.
	leastLeaning = 2 * deltaHeader
)

// difference stores a blob as what differs from the chain of its Like, if that
// takes less than 0.7 of the whole: a delta costs a base to be kept and read.
// A hint may be wrong in any way, and then counts for nothing. Where it cannot be
// followed yet, it is kept with the content.
func (p *planner) difference(ctx context.Context, b *blob.Blob) (*record, error) {
	if len(b.Data) < leastLeaning {
		return p.plain(b.Data), nil
	}
	plain := sync.OnceValue(func() *record { return p.plain(b.Data) })
	if p.far != nil {
		p.far.shut = p.far.reads >= p.reads && len(b.Data) < nearFrom
	}
	delta, err := p.against(ctx, b, plain)
	if p.far != nil {
		p.far.shut = false
	}
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, errFar) && p.later:
		return &record{kind: kindHinted, size: int64(len(b.Data)), like: b.Like, payload: b.Data}, nil
	case err != nil || delta == nil:
		return plain(), nil
	}
	return delta, nil
}

// pays tells whether a delta is worth its base, beside a whole copy of so many bytes.
func pays(delta, plain int) bool {
	return plain >= leastLeaning && 10*(delta+deltaHeader) < 7*plain
}

// clearlyPays tells that of a delta without compressing the whole for it, which is
// most of what it takes to settle an edit: text seldom shrinks to a tenth.
func clearlyPays(delta, whole int) bool { return pays(delta, whole/16) }

// against returns the delta of a blob against the ancestor that is due, or nil
// if there is none to use, or none that is worth it beside plain, a whole copy. It
// is errFar if the ancestor is, or has no place in a chain yet.
func (p *planner) against(ctx context.Context, b *blob.Blob, plain func() *record) (*record, error) {
	id := b.Like
	cur, err := p.lookup(ctx, id)
	if err != nil {
		return nil, err
	}
	position := cur.position + 1
	if position > maxPosition || (cur.local && !b.LocalOnly) {
		return nil, nil
	}
	for steps := 0; cur.position > target(position); steps++ {
		if steps == maxSteps {
			return nil, nil
		}
		id = cur.base
		if cur, err = p.lookup(ctx, id); err != nil {
			return nil, err
		}
	}
	if cur.kind == kindHinted {
		return nil, errFar
	}
	if id == b.ID { // content that came back, as after an undo
		return nil, nil
	}
	base, err := p.base(ctx, id, cur)
	if err != nil {
		return nil, err
	}
	return p.patch(position, id, base, b.Data, plain)
}

// base returns the content of a blob to compare with, which nobody may change.
func (p *planner) base(ctx context.Context, id blob.ID, r *record) ([]byte, error) {
	if p.opts.Recall != nil {
		if data := p.opts.Recall(id); data != nil {
			return data, nil
		}
	}
	if r.hollow {
		full, err := p.fetch(ctx, id)
		if err != nil {
			return nil, err
		}
		r = full
	}
	steps := maxSteps
	return p.resolve(ctx, id, r, &steps)
}

// patch replaces the middle of base, where that differs from data. Where the
// compressor comes later, only a guess tells whether it will find the rest alike.
func (p *planner) patch(position uint64, id blob.ID, base, data []byte, plain func() *record) (*record, error) {
	prefix := commonPrefix(base, data)
	suffix := commonSuffix(base[prefix:], data[prefix:])
	if prefix+suffix == 0 && max(len(base), len(data)) > maxDict {
		return nil, nil
	}
	replaced, literal := base[prefix:len(base)-suffix], data[prefix:len(data)-suffix]
	if p.later && !pays(len(literal), len(data)) && !alike(replaced, literal) {
		return nil, nil
	}
	r := p.delta(position, id, int64(prefix), int64(suffix), literal)
	r.edited = true
	if p.later {
		return r, nil
	}
	if err := p.codec.shrinkMore(r, replaced, literal); err != nil {
		return nil, err
	}
	if clearlyPays(len(r.payload), len(data)) || pays(len(r.payload), len(plain().payload)) {
		return r, nil
	}
	return nil, nil
}

// shrinkMore tries what the literal of a delta replaces as its dictionary.
func (c *codec) shrinkMore(r *record, replaced, literal []byte) error {
	if len(r.payload) < dictFrom || len(replaced) < minSize || max(len(replaced), len(literal)) > maxDict {
		return nil
	}
	small, err := c.shrinkWith(replaced, literal)
	if err == nil && len(small) < len(r.payload) {
		r.kind, r.payload = kindDeltaDict, small
	}
	return err
}

// alike guesses whether much of literal also is in replaced, by looking for a few
// short pieces around where they would be.
func alike(replaced, literal []byte) bool {
	const probes, enough, around = 12, 4, 8 << 10
	if len(literal) < probes*piece || len(replaced) < minSize {
		return false
	}
	pieces := make([][]byte, probes)
	for i := range pieces {
		at := i * (len(literal) - piece) / (probes - 1)
		pieces[i] = literal[at : at+piece]
	}
	if len(replaced) <= 4*around { // one look for all of them
		return occurring(replaced, pieces, enough) == enough
	}
	found := 0
	for i := range pieces {
		middle := i * (len(replaced) - piece) / (probes - 1)
		near := replaced[max(0, middle-around):min(len(replaced), middle+around)]
		found += occurring(near, pieces[i:i+1], 1)
		if found == enough || found+probes-1-i < enough {
			break
		}
	}
	return found == enough
}

// piece is the length of the pieces that alike looks for.
const piece = 24

// occurring counts how many of up to 16 pieces a text has, up to a number that is
// enough. It goes through the text once.
func occurring(text []byte, pieces [][]byte, enough int) (found int) {
	var wanted [1 << 11]uint16 // bits of pieces, by how they begin
	for i, p := range pieces {
		wanted[beginning(p)] |= 1 << i
	}
	for at := 0; at+piece <= len(text); at++ {
		for rest := wanted[beginning(text[at:])]; rest != 0; rest &= rest - 1 {
			i := bits.TrailingZeros16(rest)
			if !bytes.Equal(text[at:at+piece], pieces[i]) {
				continue
			}
			wanted[beginning(pieces[i])] &^= 1 << i
			if found++; found == enough {
				return found
			}
		}
	}
	return found
}

// beginning hashes eight bytes.
func beginning(b []byte) uint64 {
	return binary.LittleEndian.Uint64(b) * 0x9e3779b97f4a7c15 >> (64 - 11)
}

// commonPrefix returns how many bytes a and b begin with alike. It compares in
// blocks first, which the runtime does many bytes at a time.
func commonPrefix(a, b []byte) int {
	const block = 512
	n, limit := 0, min(len(a), len(b))
	for n+block <= limit && bytes.Equal(a[n:n+block], b[n:n+block]) {
		n += block
	}
	for n < limit && a[n] == b[n] {
		n++
	}
	return n
}

// commonSuffix returns how many bytes a and b end with alike.
func commonSuffix(a, b []byte) int {
	const block = 512
	n, limit := 0, min(len(a), len(b))
	for n+block <= limit && bytes.Equal(a[len(a)-n-block:len(a)-n], b[len(b)-n-block:len(b)-n]) {
		n += block
	}
	for n < limit && a[len(a)-n-1] == b[len(b)-n-1] {
		n++
	}
	return n
}
