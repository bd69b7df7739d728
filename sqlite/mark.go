package sqlite

import (
	"encoding/binary"
	"hash/crc32"
	"io"
)

// The mark binds the log to its database. It is in the 20 bytes of the database's
// header that the library reserves and leaves alone, so it moves with the database:
//
//	 0   8  salts of the log that the database is used with, from the log's header
//	 8   4  frames of that log that were copied into the database, or were about to be;
//	        the highest bit is set once the database has them all and nobody uses the log
//	12   4  second checksum of the last of these frames
//	16   4  CRC-32C of the bytes before
//
// All zeros mean that there was never a log.
const (
	markOffset = 72
	markSize   = 20
	markClosed = 1 << 31
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// mark identifies the log that belongs to a database.
type mark struct {
	salts  [8]byte
	frames uint32 // durable frames in the log when it was copied
	sum    uint32 // checksum of the last of them
	closed bool   // the database holds all frames; the log is not needed
}

// none reports whether there was never a log.
func (m mark) none() bool { return m == mark{} }

func (m mark) encode() []byte {
	if m.none() {
		return make([]byte, markSize)
	}
	frames := m.frames
	if m.closed {
		frames |= markClosed
	}
	b := append(make([]byte, 0, markSize), m.salts[:]...)
	b = binary.BigEndian.AppendUint32(b, frames)
	b = binary.BigEndian.AppendUint32(b, m.sum)
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// decodeMark fails for bytes that no store wrote, and for torn ones.
func decodeMark(b []byte) (m mark, ok bool) {
	if string(b) == string(make([]byte, markSize)) {
		return mark{}, true
	}
	if crc32.Checksum(b[:16], castagnoli) != binary.BigEndian.Uint32(b[16:]) {
		return mark{}, false
	}
	copy(m.salts[:], b)
	frames := binary.BigEndian.Uint32(b[8:])
	m.frames, m.closed = frames&^markClosed, frames&markClosed != 0
	m.sum = binary.BigEndian.Uint32(b[12:])
	return m, true
}

// readMark returns the mark of a database file. A file without a header has no mark.
func readMark(f io.ReaderAt) (m mark, ok bool, err error) {
	var b [markSize]byte
	if n, err := f.ReadAt(b[:], markOffset); n < len(b) {
		if err == io.EOF {
			return mark{}, true, nil
		}
		return mark{}, false, err
	}
	m, ok = decodeMark(b[:])
	return m, ok, nil
}

// overMark returns the part of p, at off in a database file, that overlaps the mark, and
// its offset within the mark.
func overMark(p []byte, off int64) (part []byte, from int) {
	start, end := max(off, markOffset), min(off+int64(len(p)), markOffset+markSize)
	if start >= end {
		return nil, 0
	}
	return p[start-off : end-off], int(start - markOffset)
}
