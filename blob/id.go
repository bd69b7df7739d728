package blob

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// IDSize is the length of an ID in bytes.
const IDSize = sha256.Size

// ID names a blob: the SHA-256 of its bytes. The zero ID means "none"; no known
// content has it.
type ID [IDSize]byte

// Sum returns the ID of data.
func Sum(data []byte) ID { return sha256.Sum256(data) }

// ParseID reads an ID from 64 hexadecimal digits. Upper case and surrounding white
// space are accepted, because stored pointers of other programs have both.
func ParseID(s string) (ID, error) {
	s = strings.TrimSpace(s)
	var id ID
	if len(s) != 2*IDSize {
		return ID{}, fmt.Errorf("%w: %d hex digits, want %d", ErrInvalidID, len(s), 2*IDSize)
	}
	if _, err := hex.Decode(id[:], []byte(s)); err != nil {
		return ID{}, fmt.Errorf("%w: %v", ErrInvalidID, err)
	}
	return id, nil
}

// IDFromBytes reads an ID from its 32 raw bytes.
func IDFromBytes(b []byte) (ID, error) {
	if len(b) != IDSize {
		return ID{}, fmt.Errorf("%w: %d bytes, want %d", ErrInvalidID, len(b), IDSize)
	}
	return ID(b), nil
}

// String returns the ID as 64 lower-case hexadecimal digits.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// Short returns the first twelve digits, for display.
func (id ID) Short() string { return hex.EncodeToString(id[:6]) }

// IsZero reports whether id is the zero ID, "none".
func (id ID) IsZero() bool { return id == ID{} }

// Bytes returns a copy of the raw bytes.
func (id ID) Bytes() []byte { return bytes.Clone(id[:]) }

// Compare orders IDs by their bytes, as stores list them.
func (id ID) Compare(other ID) int { return bytes.Compare(id[:], other[:]) }

// MarshalText makes an ID a hex string in JSON.
func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText is the inverse of MarshalText.
func (id *ID) UnmarshalText(text []byte) error {
	parsed, err := ParseID(string(text))
	if err != nil {
		return err
	}
	*id = parsed
	return nil
}
