package keyring

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/crypto/argon2"

	"github.com/stet-dev/stet/internal/osfile"
)

// Limits of Params. The lower limits are the commonly recommended minimum against
// guessing on graphics cards; the upper limits keep a hostile file from exhausting
// the machine before it is detected.
const (
	minTime, maxTime           = 2, 64
	minMemoryKiB, maxMemoryKiB = 19 << 10, 2 << 20
	minThreads, maxThreads     = 1, 64
)

// Params are the costs of argon2id. A zero field takes the default: 3 passes
// over 64 MiB with 1 thread. They are stored with the ring.
type Params struct {
	Time      uint32
	MemoryKiB uint32
	Threads   uint8
}

func (p *Params) withDefaults() Params {
	out := Params{Time: 3, MemoryKiB: 64 << 10, Threads: 1}
	if p == nil {
		return out
	}
	if p.Time != 0 {
		out.Time = p.Time
	}
	if p.MemoryKiB != 0 {
		out.MemoryKiB = p.MemoryKiB
	}
	if p.Threads != 0 {
		out.Threads = p.Threads
	}
	return out
}

func (p Params) check() error {
	if p.Time < minTime || p.Time > maxTime ||
		p.MemoryKiB < minMemoryKiB || p.MemoryKiB > maxMemoryKiB ||
		p.Threads < minThreads || p.Threads > maxThreads {
		return fmt.Errorf("%w: time %d (%d to %d), memory %d KiB (%d to %d), threads %d (%d to %d)", ErrWeak,
			p.Time, minTime, maxTime, p.MemoryKiB, minMemoryKiB, maxMemoryKiB, p.Threads, minThreads, maxThreads)
	}
	return nil
}

const (
	lockPassphrase = "argon2id"
	lockKey        = "key"
)

// Unlock opens a ring: see Passphrase, KeyFile and Raw. The zero value opens nothing.
type Unlock struct{ u *unlock }

type unlock struct {
	passphrase secret
	params     Params
	path       string
	raw        secret
}

// Passphrase opens a ring with a passphrase. The parameters matter only to Create and
// Rewrap; nil means the defaults. Open uses those of the file.
func Passphrase(passphrase string, params *Params) Unlock {
	return Unlock{&unlock{passphrase: hide([]byte(passphrase)), params: params.withDefaults()}}
}

// KeyFile opens a ring with a file of 32 bytes or of 64 hexadecimal digits. See
// GenerateKeyFile.
func KeyFile(path string) Unlock { return Unlock{&unlock{path: path}} }

// Raw opens a ring with a 32-byte key from the caller, for example from the operating
// system's keyring. It also opens a ring locked with a KeyFile of the same key.
func Raw(key []byte) Unlock {
	return Unlock{&unlock{raw: hide(bytes.Clone(key))}}
}

// String reveals nothing about the key.
func (u Unlock) String() string { return "keyring.Unlock(hidden)" }

// GoString is String.
func (u Unlock) GoString() string { return u.String() }

// Format prints String for every verb.
func (u Unlock) Format(f fmt.State, _ rune) { io.WriteString(f, u.String()) }

// newLock makes the parameters of a new lock.
func (u Unlock) newLock() (lock, error) {
	if u.u == nil {
		return lock{}, ErrUnusable
	}
	if u.u.passphrase == nil {
		return lock{Kind: lockKey}, nil
	}
	if err := u.u.params.check(); err != nil {
		return lock{}, err
	}
	salt := make([]byte, 16)
	rand.Read(salt)
	p := u.u.params
	return lock{Kind: lockPassphrase, Salt: salt, Time: p.Time, MemoryKiB: p.MemoryKiB, Threads: p.Threads}, nil
}

// master computes the master key for a lock.
func (u Unlock) master(l lock) ([]byte, error) {
	if u.u == nil {
		return nil, ErrUnusable
	}
	if l.Kind == lockPassphrase {
		return u.u.fromPassphrase(l)
	}
	if u.u.passphrase != nil {
		return nil, fmt.Errorf("%w: it is locked with a key, but a passphrase was given", ErrWrongKey)
	}
	raw, err := u.u.key()
	if err != nil {
		return nil, err
	}
	if len(raw) != keySize {
		return nil, fmt.Errorf("%w: %d bytes, want %d", ErrUnusable, len(raw), keySize)
	}
	return bytes.Clone(raw), nil
}

func (u *unlock) key() ([]byte, error) {
	if u.raw != nil {
		return u.raw(), nil
	}
	return readKeyFile(u.path)
}

func (u *unlock) fromPassphrase(l lock) ([]byte, error) {
	if u.passphrase == nil {
		return nil, fmt.Errorf("%w: it is locked with a passphrase, but a key was given", ErrWrongKey)
	}
	if len(u.passphrase()) == 0 {
		return nil, fmt.Errorf("%w: the passphrase is empty", ErrUnusable)
	}
	p := Params{Time: l.Time, MemoryKiB: l.MemoryKiB, Threads: l.Threads}
	if err := p.check(); err != nil {
		return nil, err
	}
	return argon2.IDKey(u.passphrase(), l.Salt, p.Time, p.MemoryKiB, p.Threads, keySize), nil
}

// GenerateKeyFile writes a new random key, as hexadecimal digits, into a file that
// only its owner can read. It never replaces a file.
func GenerateKeyFile(path string) error {
	key := make([]byte, keySize)
	rand.Read(key)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("generate key file: %w", err)
	}
	_, err = f.WriteString(hex.EncodeToString(key) + "\n")
	if err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = osfile.SyncDir(filepath.Dir(path))
	}
	if err != nil {
		os.Remove(path) // half a key must not look like a key; the first error counts
		return fmt.Errorf("generate key file: %w", err)
	}
	return nil
}

func readKeyFile(path string) ([]byte, error) {
	data, err := readSmall(path)
	if err != nil {
		return nil, fmt.Errorf("read key file: %w", err)
	}
	if len(data) == keySize {
		return data, nil
	}
	key, err := hex.DecodeString(string(bytes.TrimSpace(data)))
	if err != nil || len(key) != keySize {
		// The decoder's error would quote a digit of the secret.
		return nil, fmt.Errorf("%w: key file %s holds neither %d bytes nor %d hex digits", ErrUnusable, path, keySize, 2*keySize)
	}
	return key, nil
}
