package pack

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/fault"
	"github.com/stet-dev/stet/kv"
)

// An object is a head, consecutive records, an index of them, and a tail of fixed
// size with the length of the index. docs/format/pack.md has the bytes.
const (
	headMagic  = "stetPACK"
	tailMagic  = "stetPEND"
	version    = 1
	headSize   = len(headMagic) + 1
	tailSize   = 8 + sumSize + len(tailMagic)
	sumSize    = 16
	maxIndex   = 1 << 30 // of one object; a limit only for hostile lengths
	minRowItem = 1 + 1 + 1 + 1 + sumSize
	minBlob    = blob.IDSize + 1 + 1 + 1 + sumSize
)

var (
	// ErrNewerFormat says that a pack was written by a newer release.
	ErrNewerFormat = fault.Named(fault.NewerFormat, "newer-pack", "pack has a newer format")
	// ErrDamaged says that a pack is not what was written. It is a blob.ErrCorrupt.
	ErrDamaged = fault.Under(blob.ErrCorrupt, "damaged-pack", "pack is damaged")
)

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(format, args...))
}

// sum is the beginning of a SHA-256: enough to detect damage and to recognize a
// value.
type sum [sumSize]byte

func sumOf(data []byte) sum {
	full := sha256.Sum256(data)
	return sum(full[:sumSize])
}

// extent is the place of a record in an object.
type extent struct {
	offset, length int64
	sum            sum
}

type rowItem struct {
	key     string
	version uint64
	extent
}

type blobItem struct {
	name, base blob.ID
	extent
}

// index lists the content of one object: rows by key, blobs by name.
type index struct {
	rows  []rowItem
	blobs []blobItem
}

func (x *index) sort() {
	slices.SortFunc(x.rows, func(a, b rowItem) int { return cmp.Compare(a.key, b.key) })
	slices.SortFunc(x.blobs, func(a, b blobItem) int { return a.name.Compare(b.name) })
}

// head returns the first bytes of every object.
func head() []byte { return append([]byte(headMagic), version) }

// end returns the index and the tail.
func (x *index) end() []byte {
	x.sort()
	var out []byte
	out = binary.AppendUvarint(out, uint64(len(x.rows)))
	for _, r := range x.rows {
		out = appendBytes(out, r.key)
		out = binary.AppendUvarint(out, r.version)
		out = r.extent.append(out)
	}
	out = binary.AppendUvarint(out, uint64(len(x.blobs)))
	for _, b := range x.blobs {
		out = append(out, b.name[:]...)
		if b.base.IsZero() {
			out = append(out, 0)
		} else {
			out = append(append(out, 1), b.base[:]...)
		}
		out = b.extent.append(out)
	}
	s := sumOf(out)
	out = binary.BigEndian.AppendUint64(out, uint64(len(out)))
	return append(append(out, s[:]...), tailMagic...)
}

func (e extent) append(out []byte) []byte {
	out = binary.AppendUvarint(out, uint64(e.offset))
	out = binary.AppendUvarint(out, uint64(e.length))
	return append(out, e.sum[:]...)
}

func appendBytes[T ~string | ~[]byte](out []byte, b T) []byte {
	return append(binary.AppendUvarint(out, uint64(len(b))), b...)
}

// checkHead rejects an object that is not a pack, or one that this release cannot
// read.
func checkHead(b []byte) error {
	switch {
	case len(b) < headSize || string(b[:len(headMagic)]) != headMagic:
		return damaged("invalid head")
	case b[len(headMagic)] == 0:
		return damaged("it has format 0")
	case b[len(headMagic)] > version:
		return fmt.Errorf("%w: %d; this release reads %d", ErrNewerFormat, b[len(headMagic)], version)
	}
	return nil
}

// parseEnd reads the index and the tail of an object of the given size.
func parseEnd(b []byte, size int64) (*index, error) {
	if len(b) < tailSize || string(b[len(b)-len(tailMagic):]) != tailMagic {
		return nil, damaged("invalid tail")
	}
	tail := b[len(b)-tailSize:]
	length := binary.BigEndian.Uint64(tail)
	if length > maxIndex || length != uint64(len(b)-tailSize) || int64(len(b)) > size-int64(headSize) {
		return nil, damaged("an index of %d bytes", length)
	}
	b = b[:length]
	if s := sumOf(b); !bytes.Equal(s[:], tail[8:8+sumSize]) {
		return nil, damaged("its index has a wrong checksum")
	}
	p := &parser{rest: b, limit: size - int64(length) - int64(tailSize)}
	x := &index{rows: p.rows(), blobs: p.blobs()}
	if p.err == nil && len(p.rest) > 0 {
		p.fail("%d bytes after the index", len(p.rest))
	}
	return x, p.err
}

// parser reads an index or a row. After an error it returns only zeros.
type parser struct {
	rest  []byte
	limit int64 // end of the records
	err   error
}

func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = damaged(format, args...)
	}
	p.rest = nil
}

func (p *parser) number() uint64 {
	n, size := binary.Uvarint(p.rest)
	if size <= 0 {
		p.fail("truncated number")
		return 0
	}
	p.rest = p.rest[size:]
	return n
}

// take returns the next n bytes, which alias the input.
func (p *parser) take(n uint64) []byte {
	if n > uint64(len(p.rest)) {
		p.fail("want %d bytes, %d are left", n, len(p.rest))
		return nil
	}
	out := p.rest[:n]
	p.rest = p.rest[n:]
	return out
}

func (p *parser) bytes() []byte { return p.take(p.number()) }

// count reads how many items follow. Each takes at least size bytes, which limits the
// memory by the length of the input.
func (p *parser) count(size int) int {
	n := p.number()
	if n > uint64(len(p.rest)/size) {
		p.fail("%d items in %d bytes", n, len(p.rest))
		return 0
	}
	return int(n)
}

func (p *parser) extent() extent {
	offset, length := p.number(), p.number()
	e := extent{}
	copy(e.sum[:], p.take(sumSize))
	if p.err != nil {
		return extent{}
	}
	if offset < uint64(headSize) || offset > uint64(p.limit) || length > uint64(p.limit)-offset {
		p.fail("a record of %d bytes at %d, records end at %d", length, offset, p.limit)
		return extent{}
	}
	e.offset, e.length = int64(offset), int64(length)
	return e
}

func (p *parser) id() (id blob.ID) {
	copy(id[:], p.take(blob.IDSize))
	return id
}

func (p *parser) rows() []rowItem {
	rows := make([]rowItem, p.count(minRowItem))
	for i := range rows {
		rows[i] = rowItem{key: string(p.bytes()), version: p.number(), extent: p.extent()}
		if p.err != nil {
			return nil
		}
		if kv.CheckKey(rows[i].key) != nil || rows[i].version == 0 || rows[i].length > kv.MaxValue ||
			i > 0 && rows[i].key <= rows[i-1].key {
			p.fail("row %d is invalid or out of order", i)
			return nil
		}
	}
	return rows
}

func (p *parser) blobs() []blobItem {
	blobs := make([]blobItem, p.count(minBlob))
	for i := range blobs {
		b := blobItem{name: p.id()}
		if leans := p.take(1); len(leans) == 1 && leans[0] == 1 {
			b.base = p.id()
		} else if p.err == nil && leans[0] != 0 {
			p.fail("blob %d has a flag of %d", i, leans[0])
		}
		b.extent = p.extent()
		if p.err != nil {
			return nil
		}
		if i > 0 && b.name.Compare(blobs[i-1].name) <= 0 {
			p.fail("blob %d is out of order", i)
			return nil
		}
		blobs[i] = b
	}
	return blobs
}
