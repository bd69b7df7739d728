package keyring

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Ring is an opened keyring. It is safe for concurrent use; its file may be shared
// with other processes. The zero value fails with ErrUnusable.
type Ring struct {
	path  string
	state atomic.Pointer[state]

	mu   sync.Mutex  // guards seen, and serialises changes within the process
	seen os.FileInfo // the file when it was last read

	// fault is called before every step of a save; tests set it.
	fault func(step string) error
}

// Info describes a data key without its secret.
type Info struct {
	ID      KeyID
	Created time.Time // for display only; clocks jump
	Active  bool      // used for writes; all others only for reads
}

// Create makes a ring with one data key and stores it in a new file. If the file
// exists, the error wraps fs.ErrExist and nothing changes.
func Create(path string, u Unlock) (*Ring, error) {
	r := &Ring{path: path}
	err := r.locked(func() error {
		if _, err := os.Lstat(path); err == nil {
			return fmt.Errorf("%s: %w", path, os.ErrExist)
		} else if !errors.Is(err, os.ErrNotExist) {
			return err
		}
		id := make([]byte, 16)
		rand.Read(id)
		l, err := u.relock(hex.EncodeToString(id))
		if err != nil {
			return err
		}
		return r.save(newState(hex.EncodeToString(id), l))
	})
	if err != nil {
		return nil, fmt.Errorf("create keyring: %w", err)
	}
	return r, nil
}

func (u Unlock) relock(ringID string) (*locker, error) {
	l, err := u.newLock()
	if err != nil {
		return nil, err
	}
	return u.opener()(l, ringID)
}

// Open reads a ring. For a missing file the error wraps fs.ErrNotExist.
func Open(path string, u Unlock) (*Ring, error) {
	r := &Ring{path: path}
	if err := r.load(u.opener()); err != nil {
		return nil, fmt.Errorf("open keyring: %w", err)
	}
	return r, nil
}

// load reads the file into the ring's state.
func (r *Ring) load(open opener) error {
	data, info, err := readStat(r.path)
	if err != nil {
		return err
	}
	s, err := decodeState(data, open)
	if err != nil {
		return err
	}
	r.seen = info
	r.state.Store(s)
	return nil
}

// reopener opens the file again with the key that the ring was opened with. If
// another process has changed the lock since, the ring must be opened again.
func (r *Ring) reopener() opener {
	held := r.state.Load().locker
	return func(l lock, _ string) (*locker, error) {
		if !reflect.DeepEqual(l, held.lock) {
			return nil, fmt.Errorf("%w: its lock was changed since it was opened", ErrWrongKey)
		}
		return held, nil
	}
}

// Active returns the data key for writes.
func (r *Ring) Active() (Key, error) {
	s := r.state.Load()
	if s == nil {
		return Key{}, ErrUnusable
	}
	return s.keys[s.active].key, nil
}

// NameKey returns the key for names (see Key.MAC). It does not change with rotation,
// so names stay the same.
func (r *Ring) NameKey() (Key, error) {
	s := r.state.Load()
	if s == nil {
		return Key{}, ErrUnusable
	}
	return s.name, nil
}

// Key returns a data key, retired or not. For an unknown key it reads the file again,
// because another process may have rotated. If the key is still unknown, the error
// wraps ErrUnknownKey.
func (r *Ring) Key(id KeyID) (Key, error) {
	s := r.state.Load()
	if s == nil {
		return Key{}, ErrUnusable
	}
	if i, ok := s.byID[id]; ok {
		return s.keys[i].key, nil
	}
	if err := r.refresh(); err != nil {
		return Key{}, fmt.Errorf("%w: %s (and the keyring cannot be read again: %w)", ErrUnknownKey, id, err)
	}
	s = r.state.Load()
	if i, ok := s.byID[id]; ok {
		return s.keys[i].key, nil
	}
	return Key{}, fmt.Errorf("%w: %s", ErrUnknownKey, id)
}

// refresh reads the file if it has changed. Every save makes a new file, so inode,
// size and time show a change, and frequent lookups of unknown keys stay cheap.
func (r *Ring) refresh() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	info, err := os.Stat(r.path)
	if err != nil {
		return err
	}
	if r.seen != nil && os.SameFile(info, r.seen) && info.ModTime().Equal(r.seen.ModTime()) && info.Size() == r.seen.Size() {
		return nil
	}
	return r.load(r.reopener())
}

// List describes the data keys, oldest first.
func (r *Ring) List() []Info {
	s := r.state.Load()
	if s == nil {
		return nil
	}
	out := make([]Info, len(s.keys))
	for i, e := range s.keys {
		out[i] = Info{ID: e.key.id, Created: e.created, Active: i == s.active}
	}
	return out
}

// Rotate adds a data key for writes and keeps the old ones for reads. It is
// durable when it returns.
func (r *Ring) Rotate() error {
	err := r.change(func(s *state) (*state, error) {
		next := s.with(s.locker)
		next.add(entry{newKey(newKeyID()), now()})
		return next, nil
	})
	if err != nil {
		return fmt.Errorf("rotate keyring: %w", err)
	}
	return nil
}

// Remove removes retired keys from the ring. Data sealed with them can no longer be
// read, except with copies of the old file. For the active key it fails with
// ErrUnusable and changes nothing; it ignores keys that the ring does not hold.
func (r *Ring) Remove(ids ...KeyID) error {
	err := r.change(func(s *state) (*state, error) {
		if slices.Contains(ids, s.keys[s.active].key.id) {
			return nil, fmt.Errorf("%w: %s is the active key", ErrUnusable, s.keys[s.active].key.id)
		}
		return s.without(ids), nil
	})
	if err != nil {
		return fmt.Errorf("remove keys: %w", err)
	}
	return nil
}

// Refresh reads the file again if another process has changed it.
func (r *Ring) Refresh() error {
	if r.state.Load() == nil {
		return ErrUnusable
	}
	return r.refresh()
}

// Rewrap locks the same data keys with another passphrase or key. Sealed data is not
// touched, so the cost does not depend on its amount. From then on the old passphrase or
// key opens only copies of the old file.
func (r *Ring) Rewrap(u Unlock) error {
	err := r.change(func(s *state) (*state, error) {
		l, err := u.relock(s.id)
		if err != nil {
			return nil, err
		}
		return s.with(l), nil
	})
	if err != nil {
		return fmt.Errorf("rewrap keyring: %w", err)
	}
	return nil
}

// change builds the next state from the current file, not from memory: a key that
// another process added must survive.
func (r *Ring) change(next func(*state) (*state, error)) error {
	if r.state.Load() == nil {
		return ErrUnusable
	}
	return r.locked(func() error {
		if err := r.load(r.reopener()); err != nil {
			return err
		}
		s, err := next(r.state.Load())
		if err != nil {
			return err
		}
		return r.save(s)
	})
}

// String names the file and hides everything else.
func (r *Ring) String() string { return "keyring.Ring(" + r.path + ")" }

// GoString is String.
func (r *Ring) GoString() string { return r.String() }

// Format prints String for every verb.
func (r *Ring) Format(f fmt.State, _ rune) { io.WriteString(f, r.String()) }
