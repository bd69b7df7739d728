package keyring

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
)

const keySize = 32

// KeyID names a data key. It is random and independent of the key.
type KeyID [8]byte

// ParseKeyID reads a KeyID from its sixteen hexadecimal digits.
func ParseKeyID(s string) (KeyID, error) {
	var id KeyID
	if len(s) != 2*len(id) {
		return KeyID{}, fmt.Errorf("parse key id: %d hex digits, want %d", len(s), 2*len(id))
	}
	if _, err := hex.Decode(id[:], []byte(s)); err != nil {
		return KeyID{}, fmt.Errorf("parse key id: %w", err)
	}
	return id, nil
}

// String returns sixteen lower-case hexadecimal digits.
func (id KeyID) String() string { return hex.EncodeToString(id[:]) }

func newKeyID() (id KeyID) {
	rand.Read(id[:]) // never fails: the runtime crashes instead
	return id
}

// Key is a secret of a ring. The secret itself is not accessible; derive keys for a
// purpose from it. The zero Key fails with ErrUnusable.
type Key struct {
	id     KeyID
	secret secret
}

// secret hides bytes in a function. Package fmt calls no method of a value in an
// unexported field, and follows a pointer there if the verb does not fit; of a
// function it prints only the address.
type secret func() []byte

func hide(b []byte) secret { return func() []byte { return b } }

func newKey(id KeyID) Key {
	b := make([]byte, keySize)
	rand.Read(b)
	return Key{id: id, secret: hide(b)}
}

// ID returns the id of a data key; a name key has the zero id.
func (k Key) ID() KeyID { return k.id }

// Derive returns n bytes of HKDF-SHA256 over the key. Different salts or infos
// give independent results.
func (k Key) Derive(salt []byte, info string, n int) ([]byte, error) {
	if k.secret == nil {
		return nil, fmt.Errorf("derive key: %w", ErrUnusable)
	}
	out, err := hkdf.Key(sha256.New, k.secret(), salt, info, n)
	if err != nil {
		return nil, fmt.Errorf("derive key: %w", err)
	}
	return out, nil
}

// MAC returns an HMAC-SHA256 under the key. It panics for the zero Key, whose MAC
// anyone could compute.
func (k Key) MAC() hash.Hash {
	if k.secret == nil {
		panic("keyring: MAC with the zero Key")
	}
	return hmac.New(sha256.New, k.secret())
}

// String names the key and hides the secret.
func (k Key) String() string { return "keyring.Key(" + k.id.String() + ")" }

// GoString is String, so that %#v hides the secret too.
func (k Key) GoString() string { return k.String() }

// Format prints String for every verb.
func (k Key) Format(f fmt.State, _ rune) { io.WriteString(f, k.String()) }
