package workspace

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Sealer provides the keys for index files of an encrypted store. An index holds the
// name of every file and the hash of its content, which such a store must hide.
type Sealer interface {
	// Active returns the id of the key for new files.
	Active() (id [8]byte, err error)
	// Key returns 32 bytes derived from a key and the salt of a file.
	Key(id [8]byte, salt []byte) ([]byte, error)
}

const (
	sealMagic     = "stWs"
	sealVersion   = 1
	sealSaltLen   = 32
	sealHeaderLen = 8 + 8 + sealSaltLen
	nonceLen      = 12
	tagLen        = 16
)

// indexBox seals and opens the parts of one index file, whose key is used for no
// other.
type indexBox struct {
	header [sealHeaderLen]byte
	aead   cipher.AEAD
}

// newBox makes the box of a new file.
func newBox(seal Sealer) (*indexBox, error) {
	id, err := seal.Active()
	if err != nil {
		return nil, err
	}
	b := &indexBox{}
	copy(b.header[:], sealMagic)
	b.header[4], b.header[5] = sealVersion, indexVersion
	copy(b.header[8:], id[:])
	rand.Read(b.header[16:])
	return b, b.open(seal)
}

// openBox makes the box of a file from its header.
func openBox(header []byte, seal Sealer) (*indexBox, error) {
	b := &indexBox{}
	copy(b.header[:], header)
	if string(header[:4]) != sealMagic || header[4] != sealVersion || header[5] != indexVersion {
		return nil, fmt.Errorf("%w: not a sealed index of version %d", ErrBadIndex, indexVersion)
	}
	if err := b.open(seal); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadIndex, err)
	}
	return b, nil
}

func (b *indexBox) open(seal Sealer) error {
	key, err := seal.Key(b.key(), b.header[16:])
	if err != nil {
		return err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return err
	}
	b.aead, err = cipher.NewGCM(block)
	return err
}

func (b *indexBox) key() [8]byte { return [8]byte(b.header[8:16]) }

// Parts of a file, which must not be interchangeable.
const (
	partRecord = 'r'
	partEnd    = 'e'
)

// binding ties a part to its kind, its place and its length.
func (b *indexBox) binding(part byte, off int64, size int) []byte {
	out := make([]byte, 0, 24)
	out = append(out, b.header[4:8]...)
	out = append(out, part)
	out = binary.LittleEndian.AppendUint64(out, uint64(off))
	return binary.LittleEndian.AppendUint32(out, uint32(size))
}

// sealTail seals buf from begin, a part to be written at off, and puts the nonce
// before it.
func (b *indexBox) sealTail(buf []byte, begin int, nonce [nonceLen]byte, part byte, off int64) []byte {
	copy(buf[begin-nonceLen:], nonce[:])
	buf = slices.Grow(buf, tagLen)
	content := buf[begin:]
	sealed := b.aead.Seal(content[:0], nonce[:], content, b.binding(part, off, len(content)))
	return buf[:begin+len(sealed)] // in place: there is room for the tag
}

// openPart opens a nonce and its sealed part. The result is new memory.
func (b *indexBox) openPart(sealed []byte, part byte, off int64) ([]byte, error) {
	content := len(sealed) - nonceLen - tagLen
	if content < 0 {
		return nil, fmt.Errorf("%w: cut off at %d", ErrBadIndex, off)
	}
	out, err := b.aead.Open(nil, sealed[:nonceLen], sealed[nonceLen:], b.binding(part, off, content))
	if err != nil {
		return nil, fmt.Errorf("%w: cannot decrypt part at %d", ErrBadIndex, off)
	}
	return out, nil
}

// nonces generates the nonces of one save: eight random bytes and a counter, so that
// a file that was truncated by a crash and grew again never repeats one.
type nonces struct {
	next [nonceLen]byte
	used uint32
}

func newNonces() *nonces {
	n := &nonces{}
	rand.Read(n.next[:8])
	return n
}

func (n *nonces) take() [nonceLen]byte {
	binary.LittleEndian.PutUint32(n.next[8:], n.used)
	n.used++
	return n.next
}

// IndexFile describes an unopened index file.
type IndexFile struct {
	Path   string
	Sealed bool
	Key    [8]byte // the key that seals it
}

// IndexFiles finds the index files in a directory, including temporary ones of killed
// processes.
func IndexFiles(dir string) ([]IndexFile, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list index files: %w", err)
	}
	var files []IndexFile
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".index") && !strings.Contains(e.Name(), ".index.tmp-") {
			continue
		}
		f, err := describeIndex(filepath.Join(dir, e.Name()))
		if errors.Is(err, os.ErrNotExist) {
			continue // replaced or removed meanwhile
		}
		if err != nil {
			return nil, fmt.Errorf("list index files: %w", err)
		}
		files = append(files, f)
	}
	return files, nil
}

func describeIndex(path string) (IndexFile, error) {
	found := IndexFile{Path: path}
	f, err := os.Open(path)
	if err != nil {
		return found, err
	}
	defer f.Close() // only read
	var head [16]byte
	if _, err := f.ReadAt(head[:], 0); err != nil && !errors.Is(err, io.EOF) {
		return found, err
	}
	if string(head[:4]) == sealMagic {
		found.Sealed, found.Key = true, [8]byte(head[8:])
	}
	return found, nil
}
