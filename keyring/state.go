package keyring

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"
)

// state is the opened content of a ring. It never changes; a rotation makes a
// new one.
type state struct {
	id     string
	locker *locker
	name   Key
	keys   []entry
	byID   map[KeyID]int
	active int
}

type entry struct {
	key     Key
	created time.Time
}

func newState(id string, l *locker) *state {
	s := &state{id: id, locker: l, name: newKey(KeyID{}), byID: map[KeyID]int{}}
	s.add(entry{newKey(newKeyID()), now()})
	return s
}

// now is kept in seconds: the time is for display, and the order is that of the file.
func now() time.Time { return time.Now().UTC().Truncate(time.Second) }

// add appends a key and makes it the active one.
func (s *state) add(e entry) {
	s.byID[e.key.id] = len(s.keys)
	s.active = len(s.keys)
	s.keys = append(s.keys, e)
}

// with returns a copy with other locks or more room for keys.
func (s *state) with(l *locker) *state {
	c := &state{id: s.id, locker: l, name: s.name, byID: make(map[KeyID]int, len(s.keys)+1)}
	for _, e := range s.keys {
		c.add(e)
	}
	return c
}

// without returns a copy without some keys.
func (s *state) without(ids []KeyID) *state {
	c := &state{id: s.id, locker: s.locker, name: s.name, byID: make(map[KeyID]int, len(s.keys))}
	for _, e := range s.keys {
		if !slices.Contains(ids, e.key.id) {
			c.add(e)
		}
	}
	return c
}

// encode is the inverse of decodeState.
func (s *state) encode() ([]byte, error) {
	l := s.locker
	b := body{Ring: s.id, Lock: l.lock, Check: l.check, Name: l.seal(s.id, "name", s.name.secret)}
	for i, e := range s.keys {
		status := statusRetired
		if i == s.active {
			status = statusActive
		}
		id := e.key.id.String()
		b.Keys = append(b.Keys, wrappedKey{id, e.created, status, l.seal(s.id, id, e.key.secret)})
	}
	compact, err := json.Marshal(b)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(compact)
	out, err := json.MarshalIndent(file{
		Format: formatName, Version: formatVersion, Body: compact,
		Sum: hex.EncodeToString(sum[:]), MAC: l.sign(compact),
	}, "", "  ")
	return append(out, '\n'), err
}

// opener finds the locker for a stored lock: from a passphrase or key, or from an
// open ring.
type opener func(l lock, ringID string) (*locker, error)

func (u Unlock) opener() opener {
	return func(l lock, ringID string) (*locker, error) {
		master, err := u.master(l)
		if err != nil {
			return nil, err
		}
		return newLocker(master, l, ringID)
	}
}

func decodeState(data []byte, open opener) (*state, error) {
	f, b, err := parseFile(data)
	if err != nil {
		return nil, err
	}
	if b.Lock.Kind != lockKey && b.Lock.Kind != lockPassphrase {
		return nil, corrupt("unknown lock %q", b.Lock.Kind)
	}
	l, err := open(b.Lock, b.Ring)
	if err != nil {
		return nil, err
	}
	if !hmac.Equal(l.check, b.Check) {
		return nil, ErrWrongKey
	}
	if !hmac.Equal([]byte(l.sign(f.Body)), []byte(f.MAC)) {
		return nil, corrupt("it was changed without the key")
	}
	return b.unwrap(l)
}

func (b *body) unwrap(l *locker) (*state, error) {
	s := &state{id: b.Ring, locker: l, byID: make(map[KeyID]int, len(b.Keys))}
	var err error
	if s.name.secret, err = l.open(b.Ring, "name", b.Name); err != nil {
		return nil, err
	}
	for i, w := range b.Keys {
		id, err := ParseKeyID(w.ID)
		if err != nil {
			return nil, corrupt("%v", err)
		}
		if _, twice := s.byID[id]; twice {
			return nil, corrupt("duplicate key %s", id)
		}
		// The last key is the active one, all others are retired; the status is for
		// people and must agree.
		if (w.Status == statusActive) != (i == len(b.Keys)-1) || (w.Status != statusActive && w.Status != statusRetired) {
			return nil, corrupt("key %s has the wrong status %q", id, w.Status)
		}
		key, err := l.open(b.Ring, id.String(), w.Wrapped)
		if err != nil {
			return nil, err
		}
		s.add(entry{Key{id, key}, w.Created})
	}
	if len(s.keys) == 0 {
		return nil, corrupt("it holds no keys")
	}
	return s, nil
}
