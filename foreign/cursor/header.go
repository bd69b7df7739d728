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
	h, err := settledHeader(func() (seenHeader, error) { return lookAtHeader(f, path) }, rescue)
	if err != nil {
		return h, fmt.Errorf("open %s: %w", path, err)
	}
	return h, nil
}

// seenHeader is what a look at a database file found, which others may be writing.
type seenHeader struct {
	start []byte
	log   bool  // the log or the journal of a writer was there after the start was read
	size  int64 // after that
}

func lookAtHeader(f *os.File, path string) (seenHeader, error) {
	start := make([]byte, 4096)
	n, err := f.ReadAt(start, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return seenHeader{}, fmt.Errorf("read its start: %w", err)
	}
	seen := seenHeader{start: start[:n], log: notEmpty(path+"-wal") || notEmpty(path+"-journal")}
	info, err := f.Stat()
	if err != nil {
		return seenHeader{}, err
	}
	seen.size = info.Size()
	return seen, nil
}

// maxLooks limits how often a file is looked at that changes meanwhile.
const maxLooks = 100

// settledHeader checks the start of a file. A file counts as truncated only if two looks in a row
// agree: between the parts of one look a writer may have ended what it was writing.
func settledHeader(look func() (seenHeader, error), rescue bool) (fileHeader, error) {
	var before seenHeader
	for n := 1; ; n++ {
		seen, err := look()
		if err != nil {
			return fileHeader{}, err
		}
		h, err := parseHeader(seen.start, seen.size, rescue || seen.log)
		if !errors.Is(err, ErrTruncated) || n == maxLooks || n > 1 && seen.size == before.size && bytes.Equal(seen.start, before.start) {
			return h, err
		}
		before = seen
	}
}

// parseHeader checks the start of a file of the given size. With lenient a short file
// is not an error: a log may hold the rest, or a writer may be about to write it.
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

// notEmpty reports whether a file is there and has content.
func notEmpty(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Size() > 0
}
