package swapdir

import "bytes"

// holeSize is the size of a block that becomes a hole if it is zero: the least that
// file systems leave out.
const holeSize = 4096

var zeroBlock [holeSize]byte

// Write writes all of p, as io.Writer asks, behind what was written before. Blocks of
// zeros become holes, so that a sparse file is restored as one: trees do not know
// where a file had holes, and a file of zeros reads the same without its blocks.
func (f *stagedFile) Write(p []byte) (int, error) {
	done := 0
	for done < len(p) {
		n := dense(p[done:], f.size)
		if err := f.writeAt(p[done : done+n]); err != nil {
			return done, err
		}
		done, f.size = done+n, f.size+int64(n)
		for len(p)-done >= holeSize && f.size%holeSize == 0 && isZero(p[done:done+holeSize]) {
			done, f.size, f.holes = done+holeSize, f.size+holeSize, true
		}
	}
	return done, nil
}

// dense returns how many of the bytes, which begin at an offset of the file, come
// before the first block of zeros.
func dense(p []byte, off int64) int {
	n := int(-off & (holeSize - 1))
	for len(p)-n >= holeSize {
		if isZero(p[n : n+holeSize]) {
			return n
		}
		n += holeSize
	}
	return len(p)
}

func isZero(block []byte) bool { return block[0] == 0 && bytes.Equal(block, zeroBlock[:]) }
