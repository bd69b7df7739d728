package purge

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"

	"github.com/stet-dev/stet/blob"
)

// swaps maps replaced blobs to their replacements.
type swaps struct {
	by     map[blob.ID]blob.ID
	starts map[uint64]bool // first bytes of the old ids
}

func newSwaps() *swaps {
	return &swaps{by: make(map[blob.ID]blob.ID), starts: make(map[uint64]bool)}
}

func (s *swaps) add(old, now blob.ID) {
	s.by[old] = now
	s.starts[binary.LittleEndian.Uint64(old[:])] = true
}

// in returns data with the old ids, raw or in hexadecimal, replaced by the new ones,
// and the new ids, or nil if data names no old one. An id is a hash, so bytes equal
// to one are a reference in any structure, and all lengths stay the same.
func (s *swaps) in(data []byte) (out []byte, refs []blob.ID) {
	if len(s.by) == 0 {
		return nil, nil
	}
	put := func(at int, now []byte) {
		if out == nil {
			out = bytes.Clone(data)
		}
		copy(out[at:], now)
	}
	for at := 0; at+blob.IDSize <= len(data); at++ {
		if !s.starts[binary.LittleEndian.Uint64(data[at:])] {
			continue
		}
		if now, ok := s.by[blob.ID(data[at:at+blob.IDSize])]; ok {
			put(at, now[:])
			refs = append(refs, now)
			at += blob.IDSize - 1
		}
	}
	const digits = 2 * blob.IDSize
	for at, run := 0, 0; at < len(data); at++ {
		if !isHex(data[at]) {
			run = 0
			continue
		}
		if run++; run < digits {
			continue
		}
		from := at + 1 - digits
		var old blob.ID
		if _, err := hex.Decode(old[:], data[from:at+1]); err != nil {
			continue
		}
		if now, ok := s.by[old]; ok {
			put(from, []byte(now.String()))
			refs = append(refs, now)
			run = 0
		}
	}
	return out, refs
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}
