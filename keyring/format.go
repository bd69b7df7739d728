package keyring

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"
)

const (
	formatName    = "stet-keyring"
	formatVersion = 1
	maxFile       = 1 << 20 // about 4,000 keys

	statusActive  = "active"
	statusRetired = "retired"
)

// file is the content on disk; docs/format/keyring.md describes it.
type file struct {
	Format  string          `json:"format"`
	Version int             `json:"version"`
	Body    json.RawMessage `json:"body"`
	Sum     string          `json:"sum"` // distinguishes damage from a wrong key
	MAC     string          `json:"mac"` // detects tampering
}

type body struct {
	Ring  string       `json:"ring"`
	Lock  lock         `json:"lock"`
	Check []byte       `json:"check"`
	Name  []byte       `json:"name_key"`
	Keys  []wrappedKey `json:"keys"`
}

type lock struct {
	Kind      string `json:"kind"`
	Salt      []byte `json:"salt,omitempty"`
	Time      uint32 `json:"time,omitempty"`
	MemoryKiB uint32 `json:"memory_kib,omitempty"`
	Threads   uint8  `json:"threads,omitempty"`
}

type wrappedKey struct {
	ID      string    `json:"id"`
	Created time.Time `json:"created"`
	Status  string    `json:"status"`
	Wrapped []byte    `json:"wrapped"`
}

func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrCorrupt, fmt.Sprintf(format, args...))
}

// parseFile checks everything that can be checked without a key.
func parseFile(data []byte) (*file, *body, error) {
	var f file
	if err := strictJSON(data, &f); err != nil {
		var probe struct {
			Format  string `json:"format"`
			Version int    `json:"version"`
		}
		if json.Unmarshal(data, &probe) == nil && probe.Format == formatName && probe.Version != formatVersion {
			return nil, nil, fmt.Errorf("%w: %d, this release reads %d", ErrVersion, probe.Version, formatVersion)
		}
		return nil, nil, corrupt("%v", err)
	}
	if f.Format != formatName {
		return nil, nil, corrupt("not a keyring file")
	}
	if f.Version != formatVersion {
		return nil, nil, fmt.Errorf("%w: %d, this release reads %d", ErrVersion, f.Version, formatVersion)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, f.Body); err != nil {
		return nil, nil, corrupt("%v", err)
	}
	f.Body = compact.Bytes()
	sum := sha256.Sum256(f.Body)
	if f.Sum != hex.EncodeToString(sum[:]) {
		return nil, nil, corrupt("checksum does not match")
	}
	var b body
	if err := strictJSON(f.Body, &b); err != nil {
		return nil, nil, corrupt("%v", err)
	}
	return &f, &b, nil
}

// strictJSON rejects unknown fields: this release would drop them when it rewrites
// the file.
func strictJSON(data []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return err
	}
	if dec.More() {
		return fmt.Errorf("more than one JSON value")
	}
	return nil
}

// locker holds the keys derived from the passphrase or key file.
type locker struct {
	lock  lock
	wrap  cipher.AEAD
	check []byte
	mac   secret
}

func newLocker(master []byte, l lock, ringID string) (*locker, error) {
	derive := func(purpose string) ([]byte, error) {
		return hkdf.Key(sha256.New, master, []byte(ringID), "stet keyring "+purpose+" v1", keySize)
	}
	wrapKey, err := derive("wrap")
	if err != nil {
		return nil, err
	}
	check, err := derive("check")
	if err != nil {
		return nil, err
	}
	mac, err := derive("mac")
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(wrapKey)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	return &locker{lock: l, wrap: aead, check: check, mac: hide(mac)}, nil
}

// seal wraps a key. Nonces are random: a ring is rewritten far less often than 2^32
// times, where that would matter.
func (l *locker) seal(ringID, purpose string, key secret) []byte {
	nonce := make([]byte, l.wrap.NonceSize(), l.wrap.NonceSize()+keySize+l.wrap.Overhead())
	rand.Read(nonce)
	return l.wrap.Seal(nonce, nonce, key(), wrapAAD(ringID, purpose))
}

func (l *locker) open(ringID, purpose string, wrapped []byte) (secret, error) {
	n := l.wrap.NonceSize()
	if len(wrapped) != n+keySize+l.wrap.Overhead() {
		return nil, corrupt("wrapped key %s has %d bytes", purpose, len(wrapped))
	}
	key, err := l.wrap.Open(nil, wrapped[:n], wrapped[n:], wrapAAD(ringID, purpose))
	if err != nil {
		return nil, corrupt("cannot decrypt wrapped key %s", purpose)
	}
	return hide(key), nil
}

// wrapAAD ties a wrapped key to its ring and its id. Both are fixed in length or
// last, so that no two pairs give the same bytes.
func wrapAAD(ringID, purpose string) []byte {
	return []byte("stet keyring v1 " + ringID + " " + purpose)
}

func (l *locker) sign(compact []byte) string {
	m := hmac.New(sha256.New, l.mac())
	m.Write(compact)
	return hex.EncodeToString(m.Sum(nil))
}
