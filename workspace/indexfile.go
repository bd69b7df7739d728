package workspace

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/stet-dev/stet/blob"
)

const (
	indexMagic   = "stWi"
	indexVersion = 2
	endMagic     = "stWe"

	indexHeaderLen = 8
	recordHeadLen  = 8
	trailerLen     = 4 + 4 + endLen
	endLen         = 8 + 8 + blob.IDSize + eraLen // content of the trailer

	sealRecordLen  = 4 + nonceLen // before the sealed payload
	sealTrailerLen = 4 + nonceLen + endLen + tagLen
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// recordSum covers the place of a record as well as its bytes: an intact record in
// the wrong place must not be accepted.
func recordSum(off int64, payload []byte) uint32 {
	var place [8]byte
	binary.LittleEndian.PutUint64(place[:], uint64(off))
	return crc32.Update(crc32.Checksum(place[:], castagnoli), castagnoli, payload)
}

// indexSource is the stored form of an index, read record by record. Appending to its
// file moves its end, so all indexes in one file share one source.
type indexSource struct {
	r     io.ReaderAt
	path  string    // of the file, or ""
	box   *indexBox // seals the file, or nil
	base  int64     // size when the file was last rewritten
	end   atomic.Int64
	start atomic.Pointer[[]byte] // start of the file, once a scan needed all of it

	mu   sync.Mutex // guards the rest, and is held while appending
	root int64      // place of the newest root record
	node blob.ID    // of the newest root
	era  era        // of the newest index
}

// location is the place of a record.
type location struct {
	src *indexSource
	off int64
}

// dir reads the directory of a node; nil if the record does not match or is damaged.
func (l *location) dir(node blob.ID) *indexDir {
	d := &indexDir{}
	if !l.readInto(d, node) {
		return nil
	}
	return d
}

// readInto is dir into a reused directory. After a failure the content of d is
// undefined.
func (l *location) readInto(d *indexDir, node blob.ID) bool {
	payload, err := l.src.record(l.off)
	return err == nil && d.decode(payload, l.src, l.off) == nil && d.node == node
}

// layout holds the sizes of the parts around payloads.
type layout struct{ header, head, tail, trailer int64 }

func layoutOf(box *indexBox) layout {
	if box != nil {
		return layout{sealHeaderLen, sealRecordLen, tagLen, sealTrailerLen}
	}
	return layout{indexHeaderLen, recordHeadLen, 0, trailerLen}
}

// openSource checks header and trailer of a stored index of the given size; with a
// sealer, of a sealed one.
func openSource(r io.ReaderAt, size int64, seal Sealer) (*indexSource, error) {
	s := &indexSource{r: r}
	head := make([]byte, indexHeaderLen)
	if seal != nil {
		head = make([]byte, sealHeaderLen)
	}
	if size < int64(len(head))+trailerLen {
		return nil, fmt.Errorf("%w: %d bytes", ErrBadIndex, size)
	}
	if _, err := r.ReadAt(head, 0); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadIndex, err)
	}
	if plain := indexHeader(); seal == nil && string(head) != string(plain[:]) {
		return nil, fmt.Errorf("%w: not an index of version %d", ErrBadIndex, indexVersion)
	}
	if seal != nil {
		var err error
		if s.box, err = openBox(head, seal); err != nil {
			return nil, err
		}
	}
	s.end.Store(size)
	end, err := s.readEnd(size)
	if err != nil {
		return nil, err
	}
	s.root = int64(binary.LittleEndian.Uint64(end))
	s.base = int64(binary.LittleEndian.Uint64(end[8:]))
	copy(s.node[:], end[16:])
	copy(s.era[:], end[16+blob.IDSize:])
	return s, nil
}

// readEnd returns the trailer of a file of the given size.
func (s *indexSource) readEnd(size int64) ([]byte, error) {
	lay := layoutOf(s.box)
	off := size - lay.trailer
	if off < lay.header {
		return nil, fmt.Errorf("%w: %d bytes", ErrBadIndex, size)
	}
	t := make([]byte, lay.trailer)
	if _, err := s.r.ReadAt(t, off); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: %w", ErrBadIndex, err)
	}
	if string(t[:4]) != endMagic {
		return nil, fmt.Errorf("%w: torn or damaged at its end", ErrBadIndex)
	}
	if s.box != nil {
		return s.box.openPart(t[4:], partEnd, off)
	}
	if binary.LittleEndian.Uint32(t[4:]) != recordSum(off, t[8:]) {
		return nil, fmt.Errorf("%w: torn or damaged at its end", ErrBadIndex)
	}
	return t[8:], nil
}

func indexHeader() (h [indexHeaderLen]byte) {
	copy(h[:], indexMagic)
	h[4] = indexVersion
	return h
}

func appendEnd(buf []byte, root, base int64, node blob.ID, in era) []byte {
	buf = binary.LittleEndian.AppendUint64(buf, uint64(root))
	buf = binary.LittleEndian.AppendUint64(buf, uint64(base))
	buf = append(buf, node[:]...)
	return append(buf, in[:]...)
}

// maxWhole is the largest index that is read at once. An index of a million files
// takes about half of it.
const maxWhole = 256 << 20

// readWhole reads the whole file, so that records need no separate calls. It ignores
// errors; reading a record reports them.
func (s *indexSource) readWhole() {
	size := s.end.Load()
	if s.start.Load() != nil || size > maxWhole {
		return
	}
	all := make([]byte, size)
	if _, err := s.r.ReadAt(all, 0); err == nil {
		s.start.Store(&all)
	}
}

// firstRead is enough for a directory of about twenty entries.
const firstRead = 2 << 10

// bytes returns at least least bytes at off, and more if that is free. They are never
// modified afterwards.
func (s *indexSource) bytes(off, least, most int64) ([]byte, error) {
	if all := s.start.Load(); all != nil && off+least <= int64(len(*all)) {
		return (*all)[off:min(off+most, int64(len(*all)))], nil
	}
	buf := make([]byte, most)
	if _, err := s.r.ReadAt(buf, off); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadIndex, err)
	}
	return buf, nil
}

// record returns the payload of the record at off.
func (s *indexSource) record(off int64) ([]byte, error) {
	lay := layoutOf(s.box)
	limit := s.end.Load() - lay.trailer
	if off < lay.header || off > limit-lay.head {
		return nil, fmt.Errorf("%w: no record at %d", ErrBadIndex, off)
	}
	// Most records fit into the first read.
	buf, err := s.bytes(off, lay.head, min(firstRead, limit-off))
	if err != nil {
		return nil, err
	}
	size := lay.head + int64(binary.LittleEndian.Uint32(buf)) + lay.tail
	if size > limit-off {
		return nil, fmt.Errorf("%w: record of %d bytes at %d", ErrBadIndex, size, off)
	}
	if size > int64(len(buf)) {
		if buf, err = s.bytes(off, size, size); err != nil {
			return nil, err
		}
	}
	if s.box != nil {
		return s.box.openPart(buf[4:size], partRecord, off)
	}
	payload := buf[recordHeadLen:size]
	if recordSum(off, payload) != binary.LittleEndian.Uint32(buf[4:]) {
		return nil, fmt.Errorf("%w: damaged record at %d", ErrBadIndex, off)
	}
	return payload, nil
}

// appendDir encodes a directory. places are the places of its subdirectories'
// records, 0 for none.
func appendDir(buf []byte, d *indexDir, places []int64) []byte {
	buf = append(buf, d.node[:]...)
	buf = append(buf, d.rules[:]...)
	buf = binary.LittleEndian.AppendUint64(buf, uint64(d.listed.mtime))
	buf = binary.LittleEndian.AppendUint64(buf, uint64(d.listed.ctime))
	buf = binary.AppendUvarint(buf, d.listed.ino)
	buf = binary.AppendUvarint(buf, uint64(len(d.entries)))
	for i := range d.entries {
		e := &d.entries[i]
		buf = append(buf, byte(e.kind), byte(e.flags))
		buf = binary.AppendUvarint(buf, uint64(len(e.name)))
		buf = append(buf, e.name...)
		if !e.captured() {
			continue
		}
		buf = binary.AppendUvarint(buf, uint64(e.mode))
		buf = append(buf, e.id[:]...)
		if e.kind == Dir {
			buf = binary.AppendUvarint(buf, uint64(places[e.sub]))
			continue
		}
		buf = binary.AppendUvarint(buf, uint64(e.size))
		buf = binary.LittleEndian.AppendUint64(buf, uint64(e.mtime))
		buf = binary.LittleEndian.AppendUint64(buf, uint64(e.ctime))
		buf = binary.AppendUvarint(buf, e.ino)
	}
	return buf
}

// decode reads a record. Names alias the payload.
func (d *indexDir) decode(payload []byte, src *indexSource, off int64) error {
	r := reader{data: payload, bad: ErrBadIndex}
	text := unsafe.String(unsafe.SliceData(payload), len(payload)) // never modified again
	d.node = r.id()
	copy(d.rules[:], r.bytes(uint64(len(d.rules))))
	d.listed.mtime, d.listed.ctime = r.stamp(), r.stamp()
	d.listed.ino = r.uvarint()
	count := r.uvarint()
	if r.err == nil && count > uint64(r.left()/4) {
		r.fail("claims %d entries in %d bytes", count, r.left())
	}
	if r.err != nil {
		return r.err
	}
	d.entries, d.subs = slices.Grow(d.entries[:0], int(count))[:count], d.subs[:0]
	clear(d.entries)
	for i := range d.entries {
		e := &d.entries[i]
		e.kind, e.flags, e.sub = Kind(r.byte()), entryFlags(r.byte()), -1
		n := r.uvarintMax(math.MaxUint16)
		start := r.pos
		r.bytes(n)
		if r.err != nil {
			return r.err
		}
		e.name = text[start:r.pos]
		if e.name == "" || i > 0 && e.name <= d.entries[i-1].name || e.kind < File || e.kind > Symlink {
			r.fail("impossible entry")
		}
		if e.captured() {
			d.decodeCaptured(&r, e, src, off)
		}
	}
	return r.end()
}

func (d *indexDir) decodeCaptured(r *reader, e *indexEntry, src *indexSource, off int64) {
	e.mode = uint32(r.uvarintMax(modeMask))
	e.id = r.id()
	if e.kind != Dir {
		e.size = int64(r.uvarintMax(math.MaxInt64))
		e.mtime, e.ctime = r.stamp(), r.stamp()
		e.ino = r.uvarint()
		return
	}
	place := r.uvarintMax(math.MaxInt64)
	sub := &dirRef{node: e.id}
	switch {
	case place == 0:
	case int64(place) >= off: // records come after those they refer to: no cycles
		r.fail("record at %d refers to %d", off, place)
	default:
		sub.at.Store(&location{src, int64(place)})
	}
	e.sub = int32(len(d.subs))
	d.subs = append(d.subs, sub)
}

// stamp reads nanoseconds since 1970.
func (r *reader) stamp() int64 {
	if b := r.bytes(8); b != nil {
		return int64(binary.LittleEndian.Uint64(b))
	}
	return 0
}
