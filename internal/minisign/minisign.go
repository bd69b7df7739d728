// Package minisign signs files in the format of minisign, so that people can verify a
// release with a tool that they have. It promises signatures that minisign accepts, and to
// read its secret keys, with and without a passphrase. Making and keeping keys is left to
// minisign.
//
//	key, err := minisign.ParseKey(text, passphrase)
//	signature := key.Sign(data, "stet v0.1.0")
//	comment, err := minisign.Verify(public, data, signature)
package minisign

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/blake2b"
	"golang.org/x/crypto/scrypt"
)

// Parts of the format: the algorithms, and comments that begin its lines.
const (
	ed25519Key = "Ed" // of keys
	prehashed  = "ED" // of signatures of the hash of a file
	blake2     = "B2"
	scryptKDF  = "Sc"
	untrusted  = "untrusted comment: "
	trusted    = "trusted comment: "
)

// Lengths of what a secret key holds.
const (
	idBytes   = 8
	saltBytes = 32
	sumBytes  = 32
	bodyBytes = idBytes + ed25519.PrivateKeySize + sumBytes
	keyBytes  = 2 + 2 + 2 + saltBytes + 8 + 8 + bodyBytes
)

// Key is a secret key.
type Key struct {
	id     [idBytes]byte
	secret ed25519.PrivateKey
}

// ParseKey reads a secret key as minisign writes it. The passphrase is "" for a key
// without one (minisign -G -W).
func ParseKey(text, passphrase string) (*Key, error) {
	raw, err := payload(text, keyBytes)
	if err != nil {
		return nil, fmt.Errorf("minisign: secret key: %w", err)
	}
	if string(raw[:2]) != ed25519Key || string(raw[4:6]) != blake2 {
		return nil, errors.New("minisign: secret key: unknown algorithm")
	}
	body := bytes.Clone(raw[keyBytes-bodyBytes:])
	switch kdf := string(raw[2:4]); {
	case kdf == "\x00\x00":
	case kdf == scryptKDF && passphrase == "":
		return nil, errors.New("minisign: the secret key has a passphrase, and none was given")
	case kdf == scryptKDF:
		at := raw[6+saltBytes:]
		n, r, p := scryptParameters(binary.LittleEndian.Uint64(at), binary.LittleEndian.Uint64(at[8:]))
		stream, err := scrypt.Key([]byte(passphrase), raw[6:6+saltBytes], n, r, p, bodyBytes)
		if err != nil {
			return nil, fmt.Errorf("minisign: secret key: %w", err)
		}
		for i := range body {
			body[i] ^= stream[i]
		}
	default:
		return nil, errors.New("minisign: secret key: unknown way to derive it from a passphrase")
	}
	secret := body[idBytes : idBytes+ed25519.PrivateKeySize]
	if sum := checksum(body[:idBytes], secret); !bytes.Equal(sum[:], body[bodyBytes-sumBytes:]) {
		return nil, errors.New("minisign: the passphrase is wrong, or the secret key is damaged")
	}
	return NewKey([idBytes]byte(body), secret), nil
}

// NewKey returns the key of an Ed25519 key and its id.
func NewKey(id [8]byte, secret ed25519.PrivateKey) *Key { return &Key{id, secret} }

// Text returns the key without a passphrase, as minisign writes it.
func (k *Key) Text() string {
	raw := append([]byte(ed25519Key+"\x00\x00"+blake2), make([]byte, saltBytes+16)...)
	raw = append(append(raw, k.id[:]...), k.secret...)
	sum := checksum(k.id[:], k.secret)
	return untrusted + "minisign secret key\n" + base64.StdEncoding.EncodeToString(append(raw, sum[:]...)) + "\n"
}

// Public returns the public key, as minisign writes it.
func (k *Key) Public() string {
	raw := append(append([]byte(ed25519Key), k.id[:]...), k.secret.Public().(ed25519.PublicKey)...)
	return fmt.Sprintf("%sminisign public key %X\n%s\n", untrusted, binary.LittleEndian.Uint64(k.id[:]), base64.StdEncoding.EncodeToString(raw))
}

// Sign returns the signature of data, with a comment of one line that it covers.
func (k *Key) Sign(data []byte, comment string) string {
	hash := blake2b.Sum512(data)
	signature := ed25519.Sign(k.secret, hash[:])
	whole := ed25519.Sign(k.secret, append(bytes.Clone(signature), comment...))
	return untrusted + "signature from minisign secret key\n" +
		base64.StdEncoding.EncodeToString(append(append([]byte(prehashed), k.id[:]...), signature...)) + "\n" +
		trusted + comment + "\n" + base64.StdEncoding.EncodeToString(whole) + "\n"
}

// Verify checks the signature of data and returns its comment.
func Verify(public string, data []byte, signature string) (comment string, err error) {
	key, err := payload(public, 2+idBytes+ed25519.PublicKeySize)
	if err != nil {
		return "", fmt.Errorf("minisign: public key: %w", err)
	}
	sig, err := payload(signature, 2+idBytes+ed25519.SignatureSize)
	if err != nil {
		return "", fmt.Errorf("minisign: signature: %w", err)
	}
	lines := strings.Split(signature, "\n")
	if len(lines) < 4 || !strings.HasPrefix(lines[2], trusted) {
		return "", errors.New("minisign: signature: no trusted comment")
	}
	comment = strings.TrimPrefix(lines[2], trusted)
	whole, err := base64.StdEncoding.DecodeString(lines[3])
	if err != nil {
		return "", fmt.Errorf("minisign: signature: %w", err)
	}
	hash, verifier := blake2b.Sum512(data), ed25519.PublicKey(key[2+idBytes:])
	switch {
	case string(key[:2]) != ed25519Key || string(sig[:2]) != prehashed:
		return "", errors.New("minisign: unknown algorithm")
	case !bytes.Equal(key[2:2+idBytes], sig[2:2+idBytes]):
		return "", errors.New("minisign: the signature is of another key")
	case !ed25519.Verify(verifier, hash[:], sig[2+idBytes:]):
		return "", errors.New("minisign: the signature does not fit the file")
	case !ed25519.Verify(verifier, append(bytes.Clone(sig[2+idBytes:]), comment...), whole):
		return "", errors.New("minisign: the comment was changed")
	}
	return comment, nil
}

// payload returns the second line of a file, decoded.
func payload(text string, length int) ([]byte, error) {
	lines := strings.Split(text, "\n")
	if len(lines) < 2 || !strings.HasPrefix(lines[0], untrusted) {
		return nil, errors.New("not a file of minisign")
	}
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(lines[1]))
	if err == nil && len(raw) != length {
		err = fmt.Errorf("%d bytes instead of %d", len(raw), length)
	}
	return raw, err
}

func checksum(id, secret []byte) [sumBytes]byte {
	return blake2b.Sum256(append(append([]byte(ed25519Key), id...), secret...))
}

// scryptParameters are those that libsodium takes for limits of work and memory.
func scryptParameters(work, memory uint64) (n, r, p int) {
	work = max(work, 32768)
	r = 8
	limit := memory / uint64(r*128)
	if work < memory/32 {
		limit = work / uint64(r*4)
	}
	log := 1
	for ; log < 63 && uint64(1)<<log <= limit/2; log++ {
	}
	if work < memory/32 {
		return 1 << log, r, 1
	}
	product := min(work/4/(uint64(1)<<log), 0x3fffffff)
	return 1 << log, r, int(product) / r
}
