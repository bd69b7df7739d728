package access

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/stet-dev/stet/fault"
	"github.com/stet-dev/stet/internal/osfile"
	"github.com/stet-dev/stet/internal/private"
)

// errNotTokens says that a file holds something other than tokens. The caller's
// arguments are right.
var errNotTokens = fault.New(fault.Unsupported, "not a file of tokens")

// TokensName is the usual name of the file of tokens, in the directory of a store.
const TokensName = "tokens.json"

// prefix marks a token, so that people and secret scanners recognize it.
const prefix = "stet"

// Grant describes a new token.
type Grant struct {
	Tenant string
	Scope  Scope
	// Name is a description for people.
	Name string
	// Expires is when the token expires; zero means never.
	Expires time.Time
}

// Info describes a token, without the token itself.
type Info struct {
	ID      string     `json:"id"`
	Tenant  string     `json:"tenant"`
	Scope   Scope      `json:"scope"`
	Name    string     `json:"name,omitempty"`
	Created time.Time  `json:"created"`
	Expires *time.Time `json:"expires,omitempty"`
}

// Expired reports whether the token has expired at that time.
func (i Info) Expired(now time.Time) bool { return i.Expires != nil && !now.Before(*i.Expires) }

// Principal is the caller.
type Principal struct {
	Token  string // the id of the token
	Tenant string
	Scope  Scope
}

// entry is a token in the file.
type entry struct {
	Info
	Hash string `json:"hash"` // hex SHA-256 of the secret part, which is random and long
}

// file is the content of the file.
type file struct {
	Version int     `json:"version"`
	Tokens  []entry `json:"tokens"`
}

const fileVersion = 1

// Tokens are the tokens in a file. Several processes may use one file; the others see
// a change at their next call. It is safe for concurrent use.
type Tokens struct {
	path   string
	keeper Keeper // nil means the file at path
	now    func() time.Time

	mu    sync.Mutex // guards what follows
	seen  fs.FileInfo
	stamp string           // of the keeper's content
	known map[string]entry // by id
}

// OpenTokens returns the tokens in a file, which need not exist yet.
func OpenTokens(path string) *Tokens { return &Tokens{path: path, now: time.Now} }

// Create makes a token and returns it. It cannot be read again.
func (t *Tokens) Create(g Grant) (token string, info Info, err error) {
	if err := CheckTenant(g.Tenant); err != nil {
		return "", Info{}, err
	}
	if !g.Scope.Allows(Read) {
		return "", Info{}, fmt.Errorf("%w: a token needs a scope", ErrInvalid)
	}
	now := t.now().UTC().Truncate(time.Second)
	info = Info{ID: randomID(), Tenant: g.Tenant, Scope: g.Scope, Name: g.Name, Created: now}
	if !g.Expires.IsZero() {
		if !g.Expires.After(now) {
			return "", Info{}, fmt.Errorf("%w: the token would have expired already", ErrInvalid)
		}
		end := g.Expires.UTC().Truncate(time.Second)
		info.Expires = &end
	}
	var secret [32]byte
	rand.Read(secret[:])
	text := hex.EncodeToString(secret[:])
	err = t.change(func(f *file) error {
		f.Tokens = append(f.Tokens, entry{Info: info, Hash: hashOf(text)})
		return nil
	})
	if err != nil {
		return "", Info{}, fmt.Errorf("create token: %w", err)
	}
	return prefix + "_" + info.ID + "_" + text, info, nil
}

func randomID() string {
	var raw [10]byte
	rand.Read(raw[:])
	return strings.ToLower(base32.StdEncoding.EncodeToString(raw[:]))
}

func hashOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// List returns all tokens, oldest first.
func (t *Tokens) List() ([]Info, error) {
	f, err := t.read()
	if err != nil {
		return nil, err
	}
	infos := make([]Info, len(f.Tokens))
	for i, e := range f.Tokens {
		infos[i] = e.Info
	}
	return infos, nil
}

// Revoke revokes a token immediately.
func (t *Tokens) Revoke(id string) (Info, error) {
	var info Info
	err := t.change(func(f *file) error {
		i := slices.IndexFunc(f.Tokens, func(e entry) bool { return e.ID == id })
		if i < 0 {
			return ErrNotFound
		}
		info = f.Tokens[i].Info
		f.Tokens = slices.Delete(f.Tokens, i, i+1)
		return nil
	})
	if err != nil {
		return Info{}, fmt.Errorf("revoke token: %w", err)
	}
	return info, nil
}

// Verify returns the principal of a token, or ErrDenied.
func (t *Tokens) Verify(token string) (Principal, error) {
	known, err := t.current()
	if err != nil {
		return Principal{}, err
	}
	id, secret := split(token)
	e, ok := known[id]
	if !ok {
		e.Hash = hashOf("") // compare anyway
	}
	fits := subtle.ConstantTimeCompare([]byte(hashOf(secret)), []byte(e.Hash)) == 1
	if !ok || !fits || secret == "" || e.Expired(t.now()) {
		return Principal{}, ErrDenied
	}
	return Principal{Token: e.ID, Tenant: e.Tenant, Scope: e.Scope}, nil
}

// Sign returns a code over a message that only this and other servers with the same tokens can
// make, and the principal of the token that it is made for. It fails with ErrDenied if the token is
// revoked or has expired, so what was signed becomes invalid with it.
func (t *Tokens) Sign(id string, message []byte) (Principal, []byte, error) {
	known, err := t.current()
	if err != nil {
		return Principal{}, nil, err
	}
	e, ok := known[id]
	if !ok || e.Expired(t.now()) {
		return Principal{}, nil, ErrDenied
	}
	return Principal{Token: e.ID, Tenant: e.Tenant, Scope: e.Scope}, Code(e.Hash, message), nil
}

// Code returns the code of a message under a secret.
func Code(secret string, message []byte) []byte {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(message)
	return mac.Sum(nil)
}

// split returns the parts of a token, or empty strings if it is malformed.
func split(token string) (id, secret string) {
	parts := strings.Split(token, "_")
	if len(parts) != 3 || parts[0] != prefix {
		return "", ""
	}
	return parts[1], parts[2]
}

// Empty reports whether there are no tokens.
func (t *Tokens) Empty() (bool, error) {
	known, err := t.current()
	return len(known) == 0, err
}

// current returns the tokens. It reads the file again if it was replaced since the
// last time; it is always replaced as a whole.
func (t *Tokens) current() (map[string]entry, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.keeper != nil {
		return t.keptLocked()
	}
	info, err := os.Stat(t.path)
	if errors.Is(err, fs.ErrNotExist) {
		t.seen, t.known = nil, nil
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read tokens: %w", err)
	}
	if t.seen != nil && os.SameFile(info, t.seen) && info.ModTime().Equal(t.seen.ModTime()) && info.Size() == t.seen.Size() {
		return t.known, nil
	}
	f, err := t.read()
	if err != nil {
		return nil, err // do not use the old ones: one may have been revoked
	}
	// If the file was replaced after Stat, the next call sees a difference.
	t.seen, t.known = info, f.byID()
	return t.known, nil
}

func (f *file) byID() map[string]entry {
	known := make(map[string]entry, len(f.Tokens))
	for _, e := range f.Tokens {
		known[e.ID] = e
	}
	return known
}

func (t *Tokens) read() (*file, error) {
	if t.keeper != nil {
		data, _, err := t.keeper.Load()
		if err != nil {
			return nil, err
		}
		return parse(data)
	}
	data, err := private.ReadFile(t.path)
	if errors.Is(err, fs.ErrNotExist) {
		return parse(nil)
	}
	if err != nil {
		return nil, fmt.Errorf("read tokens: %w", err)
	}
	f, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("read tokens in %s: %w", t.path, err)
	}
	return f, nil
}

// parse reads the content of a file of tokens; data is nil if there is no file.
func parse(data []byte) (*file, error) {
	if data == nil {
		return &file{Version: fileVersion}, nil
	}
	var f file
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, errNotTokens)
	}
	if f.Version != fileVersion {
		return nil, fmt.Errorf("%w: format %d; this release reads %d", ErrInvalid, f.Version, fileVersion)
	}
	return &f, nil
}

// changed applies a change to the content of a file.
func changed(old []byte, do func(*file) error) ([]byte, error) {
	f, err := parse(old)
	if err != nil {
		return nil, err
	}
	if err := do(f); err != nil {
		return nil, err
	}
	data, err := json.MarshalIndent(f, "", "  ")
	return append(data, '\n'), err
}

// change replaces the file by a changed one; one process at a time.
func (t *Tokens) change(do func(*file) error) (err error) {
	if t.keeper != nil {
		return t.keeper.Change(func(old []byte) ([]byte, error) { return changed(old, do) })
	}
	if err := os.MkdirAll(filepath.Dir(t.path), 0o700); err != nil {
		return err
	}
	lock := flock.New(t.path + ".lock")
	if err := lock.Lock(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	old, err := private.ReadFile(t.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read tokens: %w", err)
	}
	data, err := changed(old, do)
	if err != nil {
		return err
	}
	return replace(t.path, data)
}

// replace writes a file so that a crash leaves either the old or the new one. Only
// its owner may read it.
func replace(path string, data []byte) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, ".tokens-*") // 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // does nothing after the rename
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := osfile.Rename(f.Name(), path); err != nil {
		return err
	}
	return osfile.SyncDir(dir)
}
