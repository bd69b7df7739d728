package cursor

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
)

const sqliteMagic = "SQLite format 3\x00"

// fileHeader is the decoded start of a database file.
type fileHeader struct {
	wal bool // the file is in WAL mode
}

// readHeader reads the start of a database file and identifies, before SQLite opens
// it, a file that is not an intact database: SQLite returns the same error for a text
// file, an encrypted database and a damaged header.
func readHeader(path string, rescue bool) (fileHeader, error) {
	f, err := os.Open(path)
	if err != nil {
		return fileHeader{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fileHeader{}, err
	}
	start := make([]byte, 4096)
	n, err := io.ReadFull(f, start)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return fileHeader{}, fmt.Errorf("read %s: %w", path, err)
	}
	h, err := parseHeader(start[:n], info.Size(), rescue || walHasFrames(path))
	if err != nil {
		return h, fmt.Errorf("open %s: %w", path, err)
	}
	return h, nil
}

// parseHeader checks the start of a file of the given size. With lenient a short file
// is not an error: a WAL may hold the rest.
func parseHeader(start []byte, size int64, lenient bool) (fileHeader, error) {
	if !bytes.HasPrefix(start, []byte(sqliteMagic)) {
		return fileHeader{}, judgeForeign(start, size)
	}
	if len(start) < 100 {
		return fileHeader{}, fmt.Errorf("%w: %d bytes", ErrTruncated, size)
	}
	pageSize := int64(binary.BigEndian.Uint16(start[16:]))
	if pageSize == 1 {
		pageSize = 65536
	}
	if pageSize < 512 || pageSize&(pageSize-1) != 0 {
		return fileHeader{}, fmt.Errorf("%w: page size %d", ErrCorrupt, pageSize)
	}
	if encoding := binary.BigEndian.Uint32(start[56:]); encoding > 1 {
		return fileHeader{}, fmt.Errorf("%w: text encoding %d, want UTF-8", ErrUnsupported, encoding)
	}
	// The page count is valid only if it was written with the change counter.
	counted := bytes.Equal(start[24:28], start[92:96])
	pages := int64(binary.BigEndian.Uint32(start[28:]))
	if counted && !lenient && pages*pageSize > size {
		return fileHeader{}, fmt.Errorf("%w: %d bytes, its header says %d", ErrTruncated, size, pages*pageSize)
	}
	return fileHeader{wal: start[18] == 2 || start[19] == 2}, nil
}

// judgeForeign distinguishes an encrypted database from other files.
func judgeForeign(start []byte, size int64) error {
	if len(start) > 0 && len(start) < len(sqliteMagic) && bytes.HasPrefix([]byte(sqliteMagic), start) {
		return fmt.Errorf("%w: %d bytes", ErrTruncated, size)
	}
	// Encrypted databases are whole pages of random bytes.
	if len(start) >= 1024 && size%512 == 0 && entropy(start) > 7.2 && !compressedMagic(start) {
		return ErrEncrypted
	}
	return ErrNotDatabase
}

func compressedMagic(start []byte) bool {
	for _, magic := range []string{"\x1f\x8b", "PK\x03\x04", "\x28\xb5\x2f\xfd", "\xfd7zXZ", "BZh", "7z\xbc\xaf"} {
		if bytes.HasPrefix(start, []byte(magic)) {
			return true
		}
	}
	return false
}

// entropy returns the bits per byte of p.
func entropy(p []byte) float64 {
	var count [256]int
	for _, b := range p {
		count[b]++
	}
	var bits float64
	for _, c := range count {
		if c > 0 {
			share := float64(c) / float64(len(p))
			bits -= share * math.Log2(share)
		}
	}
	return bits
}

// walHasFrames reports whether a WAL beside the file has frames.
func walHasFrames(path string) bool {
	info, err := os.Stat(path + "-wal")
	return err == nil && info.Size() > 0
}
