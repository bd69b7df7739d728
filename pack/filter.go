package pack

import (
	"encoding/binary"

	"github.com/stet-dev/stet/blob"
)

// filter is a Bloom filter for the blobs of a pack, with about one false positive in
// a hundred. It is in the row of the catalog, so that looking for a blob among many
// packs reads only the index of the right one. Names are hashes already, so parts of
// them serve as hash functions.
type filter []byte

const (
	filterBits   = 10 // for a blob
	filterHashes = 7
	maxFilter    = 64 << 10 // a larger one would weigh on the database
)

func newFilter(names []blob.ID) filter {
	f := make(filter, min(maxFilter, (len(names)*filterBits+7)/8))
	for _, name := range names {
		f.each(name, func(at int, bit byte) bool {
			f[at] |= bit
			return true
		})
	}
	return f
}

// may reports whether the pack may hold a blob.
func (f filter) may(name blob.ID) bool {
	found := len(f) > 0
	f.each(name, func(at int, bit byte) bool {
		found = f[at]&bit != 0
		return found
	})
	return found
}

func (f filter) each(name blob.ID, fn func(at int, bit byte) bool) {
	if len(f) == 0 {
		return
	}
	a, b := binary.BigEndian.Uint64(name[8:]), binary.BigEndian.Uint64(name[16:])|1
	for range filterHashes {
		n := a % uint64(8*len(f))
		if !fn(int(n/8), 1<<(n%8)) {
			return
		}
		a += b
	}
}
