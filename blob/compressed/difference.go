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
	// maxDict limits the size of a dictionary and of the data compressed with it.
	maxDict = 1 << 20
	// deltaHeader is the approximate overhead of a delta.
	deltaHeader = 48
	// leastLeaning is the smallest whole copy that a delta may replace.
	leastLeaning = 2 * deltaHeader
)

// difference stores a blob as its difference from the chain of its Like, if that takes
// less than 0.7 of the whole or if the blob contains nearly all of its base: a delta
// needs its base to be kept and read. A wrong hint is ignored. A hint that cannot be
// followed yet is stored with the content.
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

// pays reports whether a delta is worth its base, compared with a whole copy of plain
// bytes.
func pays(delta, plain int) bool {
	return plain >= leastLeaning && 10*(delta+deltaHeader) < 7*plain
}

// hasGrown reports whether a content that shares some bytes with a base has nearly all of
// it. Keeping the base then costs nothing: a whole copy would take as much more.
func hasGrown(shared, base int) bool { return shared >= minAlone && 16*shared >= 15*base }

// clearlyPays is pays without compressing the whole content, which takes most of the time
// for an edit: text seldom shrinks to a tenth.
func clearlyPays(delta, whole int) bool { return pays(delta, whole/16) }

// against returns the delta of a blob against the ancestor that is due. It returns
// nil if there is none, or if the delta is not worth it compared with plain, a whole
// copy. The error is errFar if the ancestor is far or has no place in a chain yet.
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
	var over []blob.ID
	for steps := 0; cur.position > target(position); steps++ {
		if steps == maxSteps {
			return nil, nil
		}
		over = append(over, id)
		id = cur.base
		if cur, err = p.lookup(ctx, id); err != nil {
			return nil, err
		}
	}
	if cur.kind == kindHinted {
		return nil, errFar
	}
	if id == b.ID { // content that returned, as after an undo
		return nil, nil
	}
	base, err := p.base(ctx, id, cur)
	if err != nil {
		return nil, err
	}
	delta, err := p.patch(position, id, base, b.Data, plain)
	if delta != nil {
		p.passedOver(b.ID, over)
	}
	return delta, err
}

// base returns the content of a blob to compare with. The caller must not change it.
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

// patch replaces the middle of base, where that differs from data. If compression is
// deferred, it guesses whether the rest is similar.
func (p *planner) patch(position uint64, id blob.ID, base, data []byte, plain func() *record) (*record, error) {
	prefix := commonPrefix(base, data)
	suffix := commonSuffix(base[prefix:], data[prefix:])
	if prefix+suffix == 0 && max(len(base), len(data)) > maxDict {
		return nil, nil
	}
	replaced, literal := base[prefix:len(base)-suffix], data[prefix:len(data)-suffix]
	grown := hasGrown(prefix+suffix, len(base))
	if p.later && !grown && !pays(len(literal), len(data)) && !alike(replaced, literal) {
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
	if grown || clearlyPays(len(r.payload), len(data)) || pays(len(r.payload), len(plain().payload)) {
		return r, nil
	}
	return nil, nil
}

// shrinkMore compresses the literal of a delta with the replaced bytes as dictionary.
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

// alike guesses whether much of literal is also in replaced, by looking for a few
// short pieces near their expected places.
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

// occurring counts how many of up to 16 pieces occur in a text, up to enough. It
// reads the text once.
func occurring(text []byte, pieces [][]byte, enough int) (found int) {
	var wanted [1 << 11]uint16 // bits of pieces, by their beginning
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

// commonPrefix returns the length of the common prefix of a and b. It compares in
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

// commonSuffix returns the length of the common suffix of a and b.
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
