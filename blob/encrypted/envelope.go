package encrypted

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/fault"
	"github.com/stet-dev/stet/keyring"
)

// The envelope; docs/format/encrypted.md has the same in a table.
const (
	magic   = "STEB"
	version = 1

	suiteWhole    = 1 // one box of at most maxWhole bytes
	suiteSegments = 2 // boxes of 1<<segmentLog bytes each, the last one shorter

	flagBase = 1 // the head also holds the id of the base

	offVersion, offSuite, offFlags, offSegment = 4, 5, 6, 7

	offKey     = 8
	offSalt    = 16
	offCRC     = 40
	headerSize = 44
	tagSize    = 16

	segmentLog               = 16 // what we write
	segmentSize              = 1 << segmentLog
	minSegLog, maxSegLog     = 12, 20 // what we read
	maxWhole                 = 1 << maxSegLog
	maxHead                  = headerSize + 2*blob.IDSize + tagSize
	maxSegments              = math.MaxUint32 - 1
	headCounter, bodyCounter = 0, 1
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// header is the clear part of an envelope.
type header struct {
	raw     [headerSize]byte
	suite   byte
	hasBase bool
	segment int // bytes of content in a box
	key     keyring.KeyID
}

func newHeader(suite byte, base blob.ID, key keyring.KeyID) header {
	h := header{suite: suite, hasBase: !base.IsZero(), segment: maxWhole, key: key}
	copy(h.raw[:], magic)
	h.raw[offVersion], h.raw[offSuite] = version, suite
	if h.hasBase {
		h.raw[offFlags] = flagBase
	}
	if suite == suiteSegments {
		h.raw[offSegment], h.segment = segmentLog, segmentSize
	}
	copy(h.raw[offKey:], key[:])
	rand.Read(h.raw[offSalt:offCRC])
	binary.BigEndian.PutUint32(h.raw[offCRC:], crc32.Checksum(h.raw[:offCRC], castagnoli))
	return h
}

// errDamaged is what the functions below return for bytes that were never written;
// their callers add the blob.
var errDamaged = fault.New(fault.Damaged, "envelope is damaged")

// parseHeader reads the clear part. The checksum comes first, so that a flipped bit
// is not mistaken for another release's form or another key; for that reason later
// versions keep the layout of the first 44 bytes.
func parseHeader(data []byte) (header, error) {
	if len(data) < headerSize {
		return header{}, fmt.Errorf("%w: cut off within its header", errDamaged)
	}
	var h header
	copy(h.raw[:], data)
	sum := crc32.Checksum(h.raw[:offCRC], castagnoli)
	if string(data[:len(magic)]) != magic || binary.BigEndian.Uint32(data[offCRC:]) != sum {
		return header{}, fmt.Errorf("%w: invalid header", errDamaged)
	}
	h.suite = data[offSuite]
	h.hasBase = data[offFlags]&flagBase != 0
	h.key = keyring.KeyID(data[offKey:offSalt])
	known := data[offVersion] == version && data[offFlags]&^flagBase == 0
	switch seg := data[offSegment]; {
	case h.suite == suiteWhole && seg == 0:
		h.segment = maxWhole
	case h.suite == suiteSegments && seg >= minSegLog && seg <= maxSegLog:
		h.segment = 1 << seg
	default:
		known = false
	}
	if !known {
		return header{}, fmt.Errorf("%w: version %d, suite %d, flags %#x, segments %d", ErrUnknownEnvelope,
			data[offVersion], h.suite, data[offFlags], data[offSegment])
	}
	return h, nil
}

// HeaderSize is how many bytes of a stored blob KeyOf needs.
const HeaderSize = headerSize

// KeyOf returns the id of the key that a stored blob is sealed with.
func KeyOf(stored []byte) (keyring.KeyID, error) {
	h, err := parseHeader(stored)
	return h.key, err
}

// Head reads the first bytes of a stored blob, for KeyOf.
func Head(ctx context.Context, stored blob.Store, name blob.ID) ([]byte, error) {
	r, err := blob.Open(ctx, stored, name)
	if err != nil {
		return nil, err
	}
	head, err := io.ReadAll(io.LimitReader(r, HeaderSize))
	return head, errors.Join(err, r.Close())
}

// headSize is the number of bytes that the header and the sealed ids take.
func (h *header) headSize() int {
	if h.hasBase {
		return headerSize + 2*blob.IDSize + tagSize
	}
	return headerSize + blob.IDSize + tagSize
}

// storedSize is the length of the envelope of a content of n bytes.
func (h *header) storedSize(n int64) int64 {
	boxes := max(1, (n+int64(h.segment)-1)/int64(h.segment))
	return int64(h.headSize()) + n + boxes*tagSize
}

// box seals and opens the parts of one envelope. Its key is used for this envelope
// alone, so the counter makes every nonce unique.
type box struct {
	aead cipher.AEAD
	aad  []byte
}

func newBox(key keyring.Key, h *header, tenant string, name blob.ID) (*box, error) {
	secret, err := key.Derive(h.raw[offSalt:offCRC], "stet blob v1 "+tenant, 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(secret)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	aad := make([]byte, 0, headerSize+4+len(tenant)+4+blob.IDSize)
	aad = appendTenant(append(aad, h.raw[:]...), tenant)
	aad = append(append(aad, "blob"...), name[:]...)
	return &box{aead, aad}, nil
}

// appendTenant puts the length first, so that two tenants never give the same bytes
// together with what follows.
func appendTenant(b []byte, tenant string) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(tenant)))
	return append(b, tenant...)
}

func nonce(counter uint32, last bool) []byte {
	var n [12]byte
	binary.BigEndian.PutUint32(n[7:], counter)
	if last {
		n[11] = 1
	}
	return n[:]
}

func (b *box) seal(dst, content []byte, counter uint32, last bool) []byte {
	return b.aead.Seal(dst, nonce(counter, last), content, b.aad)
}

// open decrypts in place: sealed is overwritten and the result lies within it.
func (b *box) open(sealed []byte, counter uint32, last bool) ([]byte, error) {
	content, err := b.aead.Open(sealed[:0], nonce(counter, last), sealed, b.aad)
	if err != nil {
		return nil, fmt.Errorf("%w: cannot decrypt part %d", errDamaged, counter)
	}
	return content, nil
}

// appendHead writes the header and the sealed ids.
func (b *box) appendHead(dst []byte, h *header, id, base blob.ID) []byte {
	ids := append(make([]byte, 0, 2*blob.IDSize), id[:]...)
	if h.hasBase {
		ids = append(ids, base[:]...)
	}
	return b.seal(append(dst, h.raw[:]...), ids, headCounter, false)
}

// openHead is the inverse of appendHead.
func (b *box) openHead(h *header, data []byte) (id, base blob.ID, err error) {
	if len(data) < h.headSize() {
		return id, base, fmt.Errorf("%w: cut off within its head", errDamaged)
	}
	ids, err := b.open(bytes.Clone(data[headerSize:h.headSize()]), headCounter, false)
	if err != nil {
		return id, base, err
	}
	copy(id[:], ids)
	if h.hasBase {
		copy(base[:], ids[blob.IDSize:])
	}
	return id, base, nil
}
