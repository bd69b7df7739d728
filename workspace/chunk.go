package workspace

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/stet-dev/stet/blob"
)

// ChunkedFrom is the size from which a file is stored as a list of chunks, so
// that neither capture nor restore holds a large file in memory and an edit
// stores only the chunks around it.
const ChunkedFrom = 8 << 20

const (
	chunkMagic   = "stWc"
	chunkVersion = 1

	minChunk = 512 << 10
	maxChunk = 4 << 20
	// cutMask makes a cut likely after another 1 MiB; it uses upper bits, because
	// those of a gear hash depend on the last 64 bytes and lower bits on fewer.
	cutMask = uint64(1<<20-1) << 44

	// maxChunks limits a list to files of a few TiB.
	maxChunks = 1 << 22
)

// Chunk is a piece of a large file.
type Chunk struct {
	Size int64
	ID   blob.ID
}

// cut returns the length of the first chunk of data, which must hold at least
// maxChunk bytes unless the file ends there. Cuts depend only on the content around
// them, so they move with an insertion.
func cut(data []byte) int {
	if len(data) <= minChunk {
		return len(data)
	}
	end := min(len(data), maxChunk)
	var h uint64
	for i := minChunk - 64; i < end; i++ {
		h = h<<1 + gear[data[i]]
		if i >= minChunk && h&cutMask == 0 {
			return i
		}
	}
	return end
}

// gear holds a random number for every byte value: the output of splitmix64 from seed
// 0. Another table would only change the places of cuts.
var gear = func() (t [256]uint64) {
	var x uint64
	for i := range t {
		x += 0x9e3779b97f4a7c15
		z := x
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		t[i] = z ^ z>>31
	}
	return t
}()

// encodeChunks returns the blob content that lists the chunks of a file.
func encodeChunks(chunks []Chunk) ([]byte, error) {
	if len(chunks) > maxChunks {
		return nil, fmt.Errorf("%w: %d chunks, at most %d", ErrBadNode, len(chunks), maxChunks)
	}
	buf := append(make([]byte, 0, 16+len(chunks)*(blob.IDSize+4)), chunkMagic...)
	buf = append(buf, chunkVersion)
	buf = binary.AppendUvarint(buf, uint64(len(chunks)))
	for _, c := range chunks {
		buf = binary.AppendUvarint(buf, uint64(c.Size))
		buf = append(buf, c.ID[:]...)
	}
	return buf, nil
}

// DecodeChunks reads a chunk list.
func DecodeChunks(data []byte) ([]Chunk, error) {
	r := reader{data: data, bad: ErrBadNode}
	r.header(chunkMagic, chunkVersion)
	count := r.uvarint()
	if count > maxChunks || count > uint64(r.left()/(1+blob.IDSize)) {
		r.fail("claims %d chunks in %d bytes", count, r.left())
	}
	if r.err != nil {
		return nil, r.err
	}
	chunks := make([]Chunk, count)
	var total int64
	for i := range chunks {
		chunks[i].Size = int64(r.uvarintMax(math.MaxInt64))
		chunks[i].ID = r.id()
		if r.err == nil && (chunks[i].Size == 0 || chunks[i].ID.IsZero() || chunks[i].Size > maxBlobSize || chunks[i].Size > MaxFileSize-total) {
			r.fail("chunk %d is invalid", i)
		}
		if r.err != nil {
			return nil, r.err
		}
		total += chunks[i].Size
	}
	return chunks, r.end()
}

// loadChunks reads the chunk list of an entry and checks it against the entry.
func loadChunks(ctx context.Context, store blob.Store, e Entry) ([]Chunk, error) {
	data, err := store.Get(ctx, e.ID)
	if err != nil {
		return nil, fmt.Errorf("read chunk list: %w", err)
	}
	chunks, err := DecodeChunks(data)
	if err != nil {
		return nil, fmt.Errorf("read chunk list %s: %w", e.ID, err)
	}
	var total int64
	for _, c := range chunks {
		total += c.Size
	}
	if total != e.Size {
		return nil, fmt.Errorf("%w: chunk list %s has %d bytes, its entry %d", ErrBadNode, e.ID, total, e.Size)
	}
	return chunks, nil
}
