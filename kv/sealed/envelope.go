package sealed

import (
	"bytes"
	"compress/flate"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/keyring"
	"github.com/stet-dev/stet/kv"
)

// The envelope; docs/format/sealed.md has the same in tables.
const (
	magic   = "SR"
	version = 1

	formKeyed    = 1 // encrypted, else only a digest
	formDeflated = 2 // the content is deflated

	prefixSize = 4
	digestSize = 16
	offNonce   = prefixSize + 8
	offCRC     = offNonce + xaesNonceSize
	headerSize = offCRC + 4
	tagSize    = 16

	unkeyedOverhead = prefixSize + digestSize
	keyedOverhead   = headerSize + tagSize
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func corrupt(key, format string, args ...any) error {
	return fmt.Errorf("%w: %q: %s", kv.ErrCorrupt, key, fmt.Sprintf(format, args...))
}

// putPrefix writes the common prefix of all forms. The fourth byte is the complement
// of the third, so that a flipped bit is not taken for a later release's form.
func putPrefix(out []byte, form byte) []byte {
	kind := version<<4 | form
	return append(append(out, magic...), kind, ^kind)
}

// parsePrefix returns the form.
func parsePrefix(key string, data []byte) (byte, error) {
	if len(data) < prefixSize || string(data[:2]) != magic || data[2] != ^data[3] {
		return 0, corrupt(key, "invalid envelope")
	}
	v, form := data[2]>>4, data[2]&0x0f
	if v != version || form&^(formKeyed|formDeflated) != 0 {
		return 0, fmt.Errorf("%w: %q: version %d, form %d", ErrUnknownEnvelope, key, v, form)
	}
	return form, nil
}

// seal returns the envelope of a value.
func (s *Store) seal(key string, value []byte) ([]byte, error) {
	overhead, form := unkeyedOverhead, byte(0)
	if s.opts.Ring != nil {
		overhead, form = keyedOverhead, formKeyed
	}
	if len(value)+overhead > kv.MaxValue {
		small, err := deflate(value)
		if err != nil {
			return nil, fmt.Errorf("deflate row %q: %w", key, err)
		}
		if len(small)+overhead > kv.MaxValue {
			return nil, fmt.Errorf("%w: %q has %d bytes and does not compress; with its seal it exceeds %d", kv.ErrTooLarge, key, len(value), kv.MaxValue)
		}
		value, form = small, form|formDeflated
	}
	out := putPrefix(make([]byte, 0, overhead+len(value)), form)
	if form&formKeyed == 0 {
		out = append(out, s.digest(out, key, value)...)
		return append(out, value...), nil
	}
	return s.encrypt(out, key, value)
}

// open verifies an envelope. It may use the memory of data for its result.
func (s *Store) open(key string, data []byte) ([]byte, error) {
	form, err := parsePrefix(key, data)
	if err != nil {
		return nil, err
	}
	var value []byte
	if form&formKeyed != 0 {
		value, err = s.decrypt(key, data)
	} else {
		value, err = s.verify(key, data)
	}
	if err == nil && form&formDeflated != 0 {
		value, err = inflate(key, value)
	}
	return value, err
}

func (s *Store) verify(key string, data []byte) ([]byte, error) {
	if s.opts.Ring != nil && !s.opts.AllowUnkeyed {
		return nil, corrupt(key, "written without a key, but a key is required")
	}
	if len(data) < unkeyedOverhead {
		return nil, corrupt(key, "cut off")
	}
	value := data[unkeyedOverhead:len(data):len(data)]
	if subtle.ConstantTimeCompare(s.digest(data[:prefixSize], key, value), data[prefixSize:unkeyedOverhead]) != 1 {
		return nil, corrupt(key, "digest does not match")
	}
	return value, nil
}

func (s *Store) digest(prefix []byte, key string, value []byte) []byte {
	h := sha256.New()
	h.Write(s.binding(prefix, key))
	h.Write(value)
	return h.Sum(nil)[:digestSize]
}

// binding returns the associated data of a value. Lengths come first, so that no two
// rows give the same bytes.
func (s *Store) binding(header []byte, key string) []byte {
	out := make([]byte, 0, len(header)+16+len(s.opts.Tenant)+len(key))
	out = append(out, header...)
	out = append(out, "row"...)
	for _, part := range []string{s.opts.Tenant, key} {
		out = binary.BigEndian.AppendUint32(out, uint32(len(part)))
		out = append(out, part...)
	}
	return out
}

// aead returns the cipher of one envelope and its nonce. The material it is derived
// from is computed once for each data key.
func (s *Store) aead(key keyring.Key, nonce []byte) (cipher.AEAD, []byte, error) {
	if x, ok := s.ciphers.Load(key.ID()); ok {
		return x.(*xaes).derive(nonce)
	}
	secret, err := key.Derive(nil, "stet row v1 "+s.opts.Tenant, 32)
	if err != nil {
		return nil, nil, err
	}
	x, err := newXAES(secret)
	if err != nil {
		return nil, nil, err
	}
	s.ciphers.Store(key.ID(), x)
	return x.derive(nonce)
}

func (s *Store) encrypt(out []byte, rowKey string, value []byte) ([]byte, error) {
	key, err := s.opts.Ring.Active()
	if err != nil {
		return nil, fmt.Errorf("seal row %q: %w", rowKey, err)
	}
	id := key.ID()
	out = append(out, id[:]...)
	out = out[:offCRC]
	rand.Read(out[offNonce:])
	out = binary.BigEndian.AppendUint32(out, crc32.Checksum(out, castagnoli))
	aead, nonce, err := s.aead(key, out[offNonce:offCRC])
	if err != nil {
		return nil, fmt.Errorf("seal row %q: %w", rowKey, err)
	}
	return aead.Seal(out, nonce, value, s.binding(out, rowKey)), nil
}

// keyOf returns the id of the data key of a keyed envelope.
func keyOf(rowKey string, data []byte) (keyring.KeyID, error) {
	if len(data) < keyedOverhead {
		return keyring.KeyID{}, corrupt(rowKey, "cut off")
	}
	if binary.BigEndian.Uint32(data[offCRC:]) != crc32.Checksum(data[:offCRC], castagnoli) {
		return keyring.KeyID{}, corrupt(rowKey, "invalid header")
	}
	return keyring.KeyID(data[prefixSize:offNonce]), nil
}

// KeyOf returns the id of the data key that a stored row is sealed with.
func KeyOf(row kv.Row) (keyring.KeyID, error) {
	form, err := parsePrefix(row.Key, row.Value)
	if err != nil {
		return keyring.KeyID{}, err
	}
	if form&formKeyed == 0 {
		return keyring.KeyID{}, fmt.Errorf("%w: %q is not encrypted", keyring.ErrUnknownKey, row.Key)
	}
	return keyOf(row.Key, row.Value)
}

func (s *Store) decrypt(rowKey string, data []byte) ([]byte, error) {
	id, err := keyOf(rowKey, data)
	if err != nil {
		return nil, err
	}
	if s.opts.Ring == nil {
		return nil, fmt.Errorf("%w: row %q is sealed with key %s, but no keyring was given", blob.ErrWrongKey, rowKey, id)
	}
	key, err := s.opts.Ring.Key(id)
	if errors.Is(err, keyring.ErrUnknownKey) {
		return nil, fmt.Errorf("%w: row %q is sealed with key %s: %w", blob.ErrWrongKey, rowKey, id, err)
	}
	if err != nil {
		return nil, fmt.Errorf("open row %q: %w", rowKey, err)
	}
	aead, nonce, err := s.aead(key, data[offNonce:offCRC])
	if err != nil {
		return nil, fmt.Errorf("open row %q: %w", rowKey, err)
	}
	sealed := data[headerSize:len(data):len(data)]
	value, err := aead.Open(sealed[:0], nonce, sealed, s.binding(data[:headerSize], rowKey))
	if err != nil {
		return nil, corrupt(rowKey, "cannot decrypt")
	}
	return value, nil
}

func deflate(value []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := flate.NewWriter(&out, flate.BestSpeed)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(value); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// inflate never returns more than the largest value, whatever the bytes claim.
func inflate(key string, small []byte) ([]byte, error) {
	value, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(small)), kv.MaxValue+1))
	if err != nil {
		return nil, corrupt(key, "cannot be inflated: %v", err)
	}
	if len(value) > kv.MaxValue {
		return nil, corrupt(key, "inflates to more than %d bytes", kv.MaxValue)
	}
	return value, nil
}
