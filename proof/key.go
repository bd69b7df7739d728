package proof

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/stet-dev/stet/internal/private"
	"github.com/stet-dev/stet/keyring"
)

const (
	// KeyName is the name of the key file in the directory of a store without a keyring.
	KeyName = "proof.key"
	sshName = "ssh-ed25519"
	derived = "stet proof v1"
	// maxKeyFile is more than any file with one key has.
	maxKeyFile = 64 << 10
)

func newer(version int) error {
	return fmt.Errorf("%w: %d; this release reads %d", ErrNewer, version, formatVersion)
}

func otherKey(got, want ed25519.PublicKey) error {
	return fmt.Errorf("%w: by %s, and not by %s", ErrOtherKey, FormatPublic(got), FormatPublic(want))
}

// StoreKey returns the key of the store in a directory. With a keyring it is derived
// from that; otherwise it is in a file that only its owner can read, which is created
// if missing.
func StoreKey(dir string, ring *keyring.Ring) (ed25519.PrivateKey, error) {
	if ring != nil {
		name, err := ring.NameKey()
		if err != nil {
			return nil, fmt.Errorf("derive the key for proofs: %w", err)
		}
		seed, err := name.Derive(nil, derived, ed25519.SeedSize)
		if err != nil {
			return nil, fmt.Errorf("derive the key for proofs: %w", err)
		}
		return ed25519.NewKeyFromSeed(seed), nil
	}
	path := filepath.Join(dir, KeyName)
	key, err := ReadKey(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	if err := makeKey(dir, path); err != nil {
		return nil, fmt.Errorf("make the key for proofs: %w", err)
	}
	return ReadKey(path)
}

// makeKey writes a new key. If another process does the same, the first one wins.
func makeKey(dir, path string) error {
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, KeyName+".*") // of mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // it has another name by then
	err = pem.Encode(f, &pem.Block{Type: "PRIVATE KEY", Bytes: der})
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// ReadKey reads an Ed25519 key from a file that only its owner can read: an OpenSSH
// key without a passphrase, or PKCS #8 in PEM.
func ReadKey(path string) (ed25519.PrivateKey, error) {
	data, err := private.ReadFile(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(data)
	if len(data) > maxKeyFile || block == nil {
		return nil, fmt.Errorf("%s: %w: it has no PEM block", path, ErrBadKey)
	}
	key, err := parsePrivate(block)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return key, nil
}

func parsePrivate(block *pem.Block) (ed25519.PrivateKey, error) {
	switch block.Type {
	case "OPENSSH PRIVATE KEY":
		return parseOpenSSH(block.Bytes)
	case "PRIVATE KEY":
		parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrBadKey, err)
		}
		if key, ok := parsed.(ed25519.PrivateKey); ok {
			return key, nil
		}
	}
	return nil, fmt.Errorf("%w: it is another kind of key", ErrBadKey)
}

// parseOpenSSH reads the format of ssh-keygen, PROTOCOL.key of OpenSSH.
func parseOpenSSH(data []byte) (ed25519.PrivateKey, error) {
	rest, ok := bytes.CutPrefix(data, []byte("openssh-key-v1\x00"))
	r := &sshReader{data: rest, ok: ok}
	cipher, kdf := r.text(), r.text()
	r.text() // options of kdf
	count := r.number()
	r.text() // the public key
	secret := &sshReader{data: r.text(), ok: r.ok}
	if secret.ok && (string(cipher) != "none" || string(kdf) != "none") {
		return nil, fmt.Errorf("%w: it has a passphrase; write a copy without one with 'ssh-keygen -p'", ErrBadKey)
	}
	check, again := secret.number(), secret.number()
	name, public, key := secret.text(), secret.text(), secret.text()
	if !secret.ok || check != again || count != 1 {
		return nil, fmt.Errorf("%w: its bytes are damaged", ErrBadKey)
	}
	if string(name) != sshName || len(key) != ed25519.PrivateKeySize {
		return nil, fmt.Errorf("%w: it is a key for %q", ErrBadKey, name)
	}
	made := ed25519.NewKeyFromSeed(key[:ed25519.SeedSize])
	if !bytes.Equal(made, key) || !bytes.Equal(made[ed25519.SeedSize:], public) {
		return nil, fmt.Errorf("%w: its two halves do not belong together", ErrBadKey)
	}
	return made, nil
}

// sshReader reads numbers and texts with their lengths.
type sshReader struct {
	data []byte
	ok   bool
}

func (r *sshReader) number() uint32 {
	if r.ok = r.ok && len(r.data) >= 4; !r.ok {
		return 0
	}
	n := binary.BigEndian.Uint32(r.data)
	r.data = r.data[4:]
	return n
}

func (r *sshReader) text() []byte {
	n := r.number()
	if r.ok = r.ok && uint64(n) <= uint64(len(r.data)); !r.ok {
		return nil
	}
	text := r.data[:n]
	r.data = r.data[n:]
	return text
}

// FormatPublic writes a public key as OpenSSH does, without a comment.
func FormatPublic(key ed25519.PublicKey) string {
	var buf []byte
	for _, part := range [][]byte{[]byte(sshName), key} {
		buf = binary.BigEndian.AppendUint32(buf, uint32(len(part)))
		buf = append(buf, part...)
	}
	return sshName + " " + base64.StdEncoding.EncodeToString(buf)
}

// ParsePublic reads a public key: a line of OpenSSH, with or without a comment, or 64
// hexadecimal digits.
func ParsePublic(text string) (ed25519.PublicKey, error) {
	text = strings.TrimSpace(text)
	if raw, err := hex.DecodeString(text); err == nil && len(raw) == ed25519.PublicKeySize {
		return raw, nil
	}
	fields := strings.Fields(text)
	if len(fields) < 2 || fields[0] != sshName {
		return nil, fmt.Errorf("%w: expected %s and a key in base64, or 64 hexadecimal digits", ErrBadKey, sshName)
	}
	raw, err := base64.StdEncoding.DecodeString(fields[1])
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadKey, err)
	}
	r := &sshReader{data: raw, ok: true}
	name, key := r.text(), r.text()
	if !r.ok || len(r.data) > 0 || string(name) != sshName || len(key) != ed25519.PublicKeySize {
		return nil, fmt.Errorf("%w: the text is cut off or damaged", ErrBadKey)
	}
	return ed25519.PublicKey(key), nil
}
