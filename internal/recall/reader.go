package recall

import "encoding/binary"

// Reader reads numbers and bytes from a result. At the end, or at what is no number, it
// becomes bad, and from then on it returns zeros.
type Reader struct {
	data []byte
	bad  bool
}

// Read returns a reader of data.
func Read(data []byte) *Reader { return &Reader{data: data} }

// Len returns how many bytes are left.
func (r *Reader) Len() int { return len(r.data) }

// Bad reports whether something was missing.
func (r *Reader) Bad() bool { return r.bad }

// Bytes returns the next n bytes, which belong to the data.
func (r *Reader) Bytes(n int) []byte {
	if len(r.data) < n {
		r.data, r.bad = nil, true
		return make([]byte, n)
	}
	out := r.data[:n]
	r.data = r.data[n:]
	return out
}

// Byte returns the next byte.
func (r *Reader) Byte() byte { return r.Bytes(1)[0] }

// Number reads a uvarint.
func (r *Reader) Number() uint64 {
	n, size := binary.Uvarint(r.data)
	if size <= 0 {
		r.data, r.bad = nil, true
		return 0
	}
	r.data = r.data[size:]
	return n
}

// Count reads how many items of at least size bytes follow. It is never more than there is
// room for.
func (r *Reader) Count(size int) int {
	return int(min(r.Number(), uint64(len(r.data)/size)))
}
