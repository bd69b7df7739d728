package compressed

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/stet-dev/stet/blob"
)

// Kinds of records: the low seven bits of their first byte.
const (
	kindRaw       = 1 // content
	kindZstd      = 2 // size, zstd frame
	kindStream    = 3 // size, zstd frame written and read as a stream
	kindDelta     = 4 // delta header, literal
	kindDeltaZstd = 5 // delta header, size of the literal, zstd frame
	kindDeltaDict = 6 // the same, with the replaced bytes as dictionary
	kindHinted    = 7 // id of a blob to compare with later, content

	// flagLocal marks a blob that is kept out of remotes. It must not be the base of
	// one that is not.
	flagLocal = 0x80
)

const (
	// minSize is the smallest content used as a dictionary.
	minSize = 64
	// dictFrom is the smallest literal, compressed by itself, for which a dictionary
	// is tried: loading one costs about a millisecond, too much for a changed line or
	// two.
	dictFrom = 2 << 10
	// minAlone is the smallest content that is compressed without a dictionary. Below
	// it, starting the coder takes more time than a lone durable write can spare, and
	// saves less than the row overhead.
	minAlone = 512
	// maxPosition ends a chain; the next blob is stored whole.
	maxPosition = 1 << 20
	// maxSteps is the longest chain that is read. Chains are written with at most 30
	// steps; copies of a blob in several stores may lean on different bases and make
	// them somewhat longer.
	maxSteps = 64
	// Contents beyond freeSize must be at least 1/maxRatio of their size in the
	// store, so that a few stored bytes cannot claim much memory.
	freeSize = 1 << 20
	maxRatio = 200
)

// record is what the store below keeps under a blob's id.
type record struct {
	kind  byte
	local bool
	size  int64 // of the content

	// Of deltas: the content is the first prefix bytes of base, the literal, and
	// the last suffix bytes of base.
	base           blob.ID
	position       uint64 // in the chain; 0 is a whole copy
	prefix, suffix int64
	literal        int64 // size of the literal

	// Of hinted ones: the blob that Compact compares the content with. Until then
	// nothing leans on this blob, because its place in a chain is unknown.
	like blob.ID

	payload []byte // content or literal, maybe compressed
	hollow  bool   // the cache has dropped the payload
	edited  bool   // planned from a hint, so not about to be extended
}

func (r *record) isDelta() bool { return r.kind >= kindDelta && r.kind <= kindDeltaDict }

// isContent reports whether the payload is the unchanged content.
func (r *record) isContent() bool { return r.kind == kindRaw || r.kind == kindHinted }

// target is the position of the base of the delta at a position: the lowest
// digit that is not 0, to base 4, less one. The base always lies on the chain of
// the predecessor, and a chain has at most three steps for each digit. Clearing
// the lowest bit instead would make chains shorter by a third, but would store
// each entry of a list log2(n)/2 times and not 3/8 of log2(n) times.
func target(position uint64) uint64 {
	if position == 0 {
		return 0
	}
	return position - 1<<(bits.TrailingZeros64(position)&^1)
}

// encode returns the bytes of the record.
func (r *record) encode() []byte {
	first := r.kind
	if r.local {
		first |= flagLocal
	}
	var room [1 + blob.IDSize + 5*binary.MaxVarintLen64]byte
	out := append(room[:0], first)
	if r.isDelta() {
		out = append(out, r.base[:]...)
		out = binary.AppendUvarint(out, r.position)
		out = binary.AppendUvarint(out, uint64(r.prefix))
		out = binary.AppendUvarint(out, uint64(r.suffix))
	}
	switch r.kind {
	case kindHinted:
		out = append(out, r.like[:]...)
	case kindZstd, kindStream:
		out = binary.AppendUvarint(out, uint64(r.size))
	case kindDeltaZstd, kindDeltaDict:
		out = binary.AppendUvarint(out, uint64(r.literal))
	}
	if len(r.payload) < 1<<10 {
		return append(append(make([]byte, 0, len(out)+len(r.payload)), out...), r.payload...)
	}
	// append does not clear the memory that the payload overwrites.
	return append(append([]byte(nil), out...), r.payload...)
}

// parse reads a record. It rejects one that this package did not write or that claims
// too much memory. It keeps data.
func parse(id blob.ID, data []byte, maxBlob int64) (*record, error) {
	p := parser{id: id, rest: data}
	first := p.take(1)
	if p.err != nil {
		return nil, p.err
	}
	r := &record{kind: first[0] &^ flagLocal, local: first[0]&flagLocal != 0}
	switch r.kind {
	case kindRaw:
		r.payload, r.size = p.rest, int64(len(p.rest))
		return r, nil
	case kindZstd, kindStream:
		r.size = p.number()
	case kindDelta, kindDeltaZstd, kindDeltaDict:
		p.delta(r)
	case kindHinted:
		p.hint(r)
	default:
		return nil, blob.Corrupt(id, "unknown kind of record %d", r.kind)
	}
	if p.err != nil {
		return nil, p.err
	}
	r.payload = p.rest
	return r, r.check(id, maxBlob)
}

// check enforces the limits.
func (r *record) check(id blob.ID, maxBlob int64) error {
	inflated := r.size
	if r.isDelta() {
		inflated = r.literal
	}
	if r.size > maxBlob {
		return fmt.Errorf("%w: %s has %d bytes; the limit for one read is %d", blob.ErrTooLarge, id, r.size, maxBlob)
	}
	if inflated > max(freeSize, maxRatio*int64(len(r.payload))) {
		return blob.Corrupt(id, "%d stored bytes claim to hold %d", len(r.payload), inflated)
	}
	return nil
}

// parser reads the fields of a record; after an error it reads nothing more.
type parser struct {
	id   blob.ID
	rest []byte
	err  error
}

func (p *parser) take(n int) []byte {
	if p.err != nil {
		return nil
	}
	if len(p.rest) < n {
		p.err = blob.Corrupt(p.id, "record ends early")
		return nil
	}
	field := p.rest[:n]
	p.rest = p.rest[n:]
	return field
}

// maxNumber is the largest number in a record: sums of a few do not overflow.
const maxNumber = 1 << 60

// number reads a size or position.
func (p *parser) number() int64 {
	if p.err != nil {
		return 0
	}
	v, n := binary.Uvarint(p.rest)
	if n <= 0 || v > maxNumber {
		p.err = blob.Corrupt(p.id, "record has a bad number")
		return 0
	}
	p.rest = p.rest[n:]
	return int64(v)
}

func (p *parser) hint(r *record) {
	copy(r.like[:], p.take(blob.IDSize))
	r.size = int64(len(p.rest))
	if p.err == nil && !hints(p.id, r.like) {
		p.err = blob.Corrupt(p.id, "hints at %s", r.like)
	}
}

// hints reports whether like is a valid hint for a blob.
func hints(id, like blob.ID) bool { return !like.IsZero() && like != id }

func (p *parser) delta(r *record) {
	copy(r.base[:], p.take(blob.IDSize))
	r.position = uint64(p.number())
	r.prefix, r.suffix = p.number(), p.number()
	if r.kind == kindDelta {
		r.literal = int64(len(p.rest))
	} else {
		r.literal = p.number()
	}
	r.size = r.prefix + r.literal + r.suffix
	if p.err == nil && (r.base.IsZero() || r.base == p.id || r.position == 0 || r.position > maxPosition) {
		p.err = blob.Corrupt(p.id, "delta at position %d with base %s", r.position, r.base)
	}
}
