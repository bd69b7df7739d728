package workspace

import (
	"encoding/binary"
	"fmt"
	"io/fs"

	"github.com/stet-dev/stet/blob"
)

// Limits of a directory node, enforced on the way in and on the way out.
const (
	// MaxName is the longest name of an entry in bytes.
	MaxName = 255
	// MaxPath is the longest path in bytes.
	MaxPath = 4096
	// MaxEntries is the largest number of entries in one directory.
	MaxEntries = 1 << 20
	// MaxFileSize is the size of the largest file in a tree: the limit of a list of
	// chunks.
	MaxFileSize = 1 << 44
	// maxBlobSize is the size of the largest content in one blob. Scans split files
	// into chunks long before that; no store accepts a larger blob.
	maxBlobSize = 1 << 32
	// MaxTree is the largest number of entries that Walk and Diff visit. A few nodes
	// that refer to each other many times make an endless tree, which no scan writes.
	MaxTree = 1 << 24
)

const (
	nodeMagic   = "stWd"
	nodeVersion = 1

	chunkedBit = 0x80 // in the kind byte of a file
	modeMask   = 0o7777

	// minEntryLen is the minimum size of an entry: kind, mode, length, one byte of
	// name, size, id. It limits the count that a decoder accepts.
	minEntryLen = 1 + 1 + 1 + 1 + blob.IDSize
)

// EncodeNode returns the unique encoding of a directory with the given entries, which
// must be sorted by name. docs/FORMAT.md describes the bytes.
func EncodeNode(entries []Entry) ([]byte, error) {
	if len(entries) > MaxEntries {
		return nil, fmt.Errorf("%w: %d entries, at most %d", ErrBadNode, len(entries), MaxEntries)
	}
	size := len(nodeMagic) + 1 + binary.MaxVarintLen32
	for i := range entries {
		size += minEntryLen + 12 + len(entries[i].Name)
	}
	buf := append(make([]byte, 0, size), nodeMagic...)
	buf = append(buf, nodeVersion)
	buf = binary.AppendUvarint(buf, uint64(len(entries)))
	last := ""
	for i := range entries {
		e := &entries[i]
		if err := checkEntry(e, last, i == 0); err != nil {
			return nil, err
		}
		last = e.Name
		kind := byte(e.Kind)
		if e.Chunked {
			kind |= chunkedBit
		}
		buf = append(buf, kind)
		buf = binary.AppendUvarint(buf, uint64(e.Mode))
		buf = binary.AppendUvarint(buf, uint64(len(e.Name)))
		buf = append(buf, e.Name...)
		if e.Kind != Dir {
			buf = binary.AppendUvarint(buf, uint64(e.Size))
		}
		buf = append(buf, e.ID[:]...)
	}
	return buf, nil
}

// checkEntry enforces the rules that encoder and decoder share.
func checkEntry(e *Entry, last string, first bool) error {
	switch {
	case !first && e.Name <= last:
		return fmt.Errorf("%w: name %q after %q", ErrBadNode, e.Name, last)
	case e.Kind != File && e.Kind != Dir && e.Kind != Symlink:
		return fmt.Errorf("%w: %q has kind %d", ErrBadNode, e.Name, e.Kind)
	case e.Chunked && e.Kind != File:
		return fmt.Errorf("%w: %q is a chunked %s", ErrBadNode, e.Name, e.Kind)
	case e.Mode&^modeMask != 0, e.Kind == Symlink && e.Mode != 0:
		return fmt.Errorf("%w: %q has mode %#o", ErrBadNode, e.Name, e.Mode)
	case e.Size < 0, e.Kind == Dir && e.Size != 0, e.Kind == Symlink && e.Size > MaxPath:
		return fmt.Errorf("%w: %q has size %d", ErrBadNode, e.Name, e.Size)
	case e.Size > MaxFileSize, e.Size > maxBlobSize && !e.Chunked:
		return fmt.Errorf("%w: %q claims %d bytes", ErrBadNode, e.Name, e.Size)
	case e.ID.IsZero():
		return fmt.Errorf("%w: %q has no id", ErrBadNode, e.Name)
	}
	if err := CheckName(e.Name); err != nil {
		return fmt.Errorf("%w: %w", ErrBadNode, err)
	}
	return nil
}

// DecodeNode reads a directory node. It accepts exactly the output of EncodeNode and
// does not keep data.
func DecodeNode(data []byte) ([]Entry, error) {
	r := reader{data: data, bad: ErrBadNode}
	count := r.entries()
	if r.err != nil {
		return nil, r.err
	}
	entries := make([]Entry, count)
	last := ""
	for i := range entries {
		e := &entries[i]
		e.Name = string(r.entry(e))
		if r.err != nil {
			return nil, r.err
		}
		if err := checkEntry(e, last, i == 0); err != nil {
			return nil, err
		}
		last = e.Name
	}
	return entries, r.end()
}

// findEntry returns the entry of a directory node under a name, or fs.ErrNotExist. It does
// not read the entries that sort after it.
func findEntry(data []byte, name string) (Entry, error) {
	r := reader{data: data, bad: ErrBadNode}
	for range r.entries() {
		var e Entry
		found := r.entry(&e)
		if r.err != nil {
			break
		}
		if string(found) < name {
			continue
		}
		if string(found) > name {
			return Entry{}, fs.ErrNotExist
		}
		e.Name = name
		return e, checkEntry(&e, "", true)
	}
	if r.err != nil {
		return Entry{}, r.err
	}
	return Entry{}, fs.ErrNotExist
}

// entries reads the header of a directory node and returns the number of its entries.
func (r *reader) entries() uint64 {
	r.header(nodeMagic, nodeVersion)
	count := r.uvarint()
	if count > MaxEntries || count > uint64(r.left()/minEntryLen) {
		r.fail("claims %d entries in %d bytes", count, r.left())
		return 0
	}
	return count
}

// entry reads an entry and returns its name, which belongs to the data.
func (r *reader) entry(e *Entry) (name []byte) {
	kind := r.byte()
	e.Kind, e.Chunked = Kind(kind&^chunkedBit), kind&chunkedBit != 0
	e.Mode = uint32(r.uvarintMax(modeMask))
	name = r.bytes(r.uvarintMax(MaxName))
	if e.Kind != Dir {
		e.Size = int64(r.uvarintMax(1<<63 - 1))
	}
	e.ID = r.id()
	return name
}

// reader reads values from a slice and remembers the first error, so that a decoder
// is a list of fields.
type reader struct {
	data []byte
	pos  int
	bad  error // wrapped by errors
	err  error
}

func (r *reader) left() int { return len(r.data) - r.pos }

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: at byte %d: %s", r.bad, r.pos, fmt.Sprintf(format, args...))
	}
}

func (r *reader) header(magic string, version byte) {
	if got := r.bytes(uint64(len(magic))); r.err == nil && string(got) != magic {
		r.fail("no %q at the start", magic)
	}
	if got := r.byte(); r.err == nil && got != version {
		r.fail("version %d; this program reads %d", got, version)
	}
}

func (r *reader) byte() byte {
	if b := r.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) bytes(n uint64) []byte {
	if r.err != nil {
		return nil
	}
	if n > uint64(r.left()) {
		r.fail("%d bytes wanted, %d left", n, r.left())
		return nil
	}
	b := r.data[r.pos : r.pos+int(n)]
	r.pos += int(n)
	return b
}

func (r *reader) uvarint() uint64 {
	if r.err != nil {
		return 0
	}
	if r.pos < len(r.data) && r.data[r.pos] < 0x80 { // the usual case, inline
		r.pos++
		return uint64(r.data[r.pos-1])
	}
	v, n := binary.Uvarint(r.data[r.pos:])
	// A number has one encoding: a trailing zero byte would be a longer one.
	if n <= 0 || n > 1 && r.data[r.pos+n-1] == 0 {
		r.fail("not a number")
		return 0
	}
	r.pos += n
	return v
}

func (r *reader) uvarintMax(limit uint64) uint64 {
	v := r.uvarint()
	if v > limit {
		r.fail("number %d, at most %d", v, limit)
		return 0
	}
	return v
}

func (r *reader) id() (id blob.ID) {
	copy(id[:], r.bytes(blob.IDSize))
	return id
}

func (r *reader) end() error {
	if r.err == nil && r.left() > 0 {
		r.fail("%d bytes left over", r.left())
	}
	return r.err
}
