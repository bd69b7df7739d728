package swapdir

import (
	"bytes"
	"io"
	"os"
	"testing"
)

// Whatever pieces a content is written in, it is all there.
func TestPiecesOfSparseFiles(t *testing.T) {
	content := make([]byte, 10*holeSize+5)
	for _, at := range []int{3*holeSize - 1, 4 * holeSize, 9*holeSize + 7} {
		content[at] = 'x'
	}
	for _, end := range []int{0, 1, holeSize, 2 * holeSize, 9 * holeSize, len(content)} {
		for _, piece := range []int{1000, holeSize, holeSize + 1, 3*holeSize + 5, 1 << 20} {
			file, err := os.CreateTemp(t.TempDir(), "")
			must(t, err)
			w := stagedFileOf(file)
			_, err = w.fill(func(to io.Writer) error {
				for from := 0; from < end; from += piece {
					if _, err := to.Write(content[from:min(from+piece, end)]); err != nil {
						return err
					}
				}
				return nil
			}, 0o600, owner{os.Getuid(), os.Getgid()})
			must(t, err)
			got, err := os.ReadFile(file.Name())
			must(t, err)
			must(t, file.Close())
			if !bytes.Equal(got, content[:end]) {
				t.Errorf("%d bytes in pieces of %d: %d came out", end, piece, len(got))
			}
		}
	}
}
