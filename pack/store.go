package pack

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// Errors that callers branch on.
var (
	// ErrSealed says that a conversation is sealed already.
	ErrSealed = errors.New("conversation is sealed already")
	// ErrNotSealed says that a conversation is not sealed.
	ErrNotSealed = errors.New("conversation is not sealed")
	// ErrChanged says that a conversation was used while it was being sealed. It
	// stays as it is.
	ErrChanged = errors.New("conversation changed while it was being sealed")
	// ErrEmpty says that there is nothing to seal.
	ErrEmpty = errors.New("conversation has no rows to seal")
)

// Options shape a Store; nil and the zero value work.
type Options struct {
	// Prefix begins the keys of all objects; "packs/" by default.
	Prefix string
	// ObjectBytes is the size at which an object is closed and another one begun,
	// 32 MiB by default. A larger blob gets an object of its own.
	ObjectBytes int64
	// Recent is how many sealed conversations are remembered as read, so that their
	// blobs are found; 4096 by default.
	Recent int
	// CacheBytes bounds the memory for indexes and, once more, for blocks of
	// objects; 32 MiB by default.
	CacheBytes int64
	// Now is the clock; time.Now by default. It is for display only.
	Now func() time.Time
}

func (o *Options) withDefaults() Options {
	var d Options
	if o != nil {
		d = *o
	}
	if d.Prefix == "" {
		d.Prefix = "packs/"
	}
	if d.ObjectBytes <= 0 {
		d.ObjectBytes = 32 << 20
	}
	if d.Recent <= 0 {
		d.Recent = 4096
	}
	if d.CacheBytes <= 0 {
		d.CacheBytes = 32 << 20
	}
	if d.Now == nil {
		d.Now = time.Now
	}
	return d
}

// Store moves conversations between a pair of drivers and a bucket. It is safe
// for concurrent use, and by several processes over the same drivers and bucket.
type Store struct {
	blobs   blob.Store // the driver's
	rows    kv.Store   // the driver's
	objects blob.Objects
	opts    Options

	mu     sync.Mutex // guards what follows
	recent *lru[string, *entry]
	open   *lru[string, uint64]    // conversations that are not sealed at this version of their record
	loaded *lru[string, *contents] // by the key of the first object
	blocks *lru[blockKey, []byte]
	busy   map[string]chan struct{} // conversations that this process brings back
	reads  [128]string              // guards of rows that were read from the database lately
	last   int                      // the latest of them
}

// New returns a store over a pair of drivers, which share their durability as
// those of any backend do, and a bucket.
func New(blobs blob.Store, rows kv.Store, objects blob.Objects, opts *Options) *Store {
	o := opts.withDefaults()
	return &Store{
		blobs: blobs, rows: rows, objects: objects, opts: o,
		recent: newLRU[string, *entry](int64(o.Recent)),
		open:   newLRU[string, uint64](int64(o.Recent)),
		loaded: newLRU[string, *contents](o.CacheBytes),
		blocks: newLRU[blockKey, []byte](o.CacheBytes),
		busy:   make(map[string]chan struct{}),
	}
}

// entry reads the row of the catalog of a conversation, or returns nil if it is
// not sealed.
func (s *Store) entry(ctx context.Context, id string) (*entry, error) {
	e, err := s.note(ctx, id)
	if err != nil || e == nil || e.state != sealed {
		return nil, err
	}
	s.remember(e)
	return e, nil
}

// note is entry, also for a conversation that somebody is sealing.
func (s *Store) note(ctx context.Context, id string) (*entry, error) {
	row, err := s.rows.Get(ctx, keyspace.Pack(id))
	if errors.Is(err, kv.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for the packs of %s: %w", id, err)
	}
	return decodeEntry(row)
}

// guarded finds out what a guard says: the conversation that is sealed, and the
// row's shadow if it has one. It returns nil if nothing is sealed.
func (s *Store) guarded(ctx context.Context, guard string) (*entry, *shadow, error) {
	if keyspace.Packs().Contains(guard) {
		e, err := s.entry(ctx, keyspace.Last(guard))
		return e, nil, err
	}
	row, err := s.rows.Get(ctx, guard)
	if errors.Is(err, kv.ErrNotFound) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("look for sealed row %q: %w", keyspace.Unpacked(guard), err)
	}
	sh, err := decodeShadow(row)
	if err != nil {
		return nil, nil, err
	}
	e, err := s.entry(ctx, sh.conversation)
	if e == nil {
		sh = nil // brought back between the two looks
	}
	return e, sh, err
}

// remember notes that a sealed conversation was read: its blobs will be next.
func (s *Store) remember(e *entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recent.add(e.id, e, 1)
}

// isOpen reports whether a conversation is known not to be sealed as long as its
// record has a version.
func (s *Store) isOpen(id string, version uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.open.get(id)
	return ok && known == version
}

func (s *Store) setOpen(id string, version uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open.add(id, version, 1)
}

// noteRead remembers that rows were found in the database: who read them will ask
// for blobs, also if all of them are sealed elsewhere meanwhile.
func (s *Store) noteRead(guard string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reads[s.last] != guard {
		s.last = (s.last + 1) % len(s.reads)
		s.reads[s.last] = guard
	}
}

// lookAgain finds out which of the conversations that were read lately are sealed
// by now, and reports whether there are any.
func (s *Store) lookAgain(ctx context.Context) (found bool, err error) {
	s.mu.Lock()
	reads := s.reads
	s.mu.Unlock()
	seen := make(map[string]bool, len(reads))
	for _, guard := range reads {
		if guard == "" || seen[guard] {
			continue
		}
		seen[guard] = true
		e, _, err := s.guarded(ctx, guard)
		if err != nil {
			return found, err
		}
		if e == nil {
			continue
		}
		found = true
		s.mu.Lock()
		for i := range s.reads {
			if s.reads[i] == guard {
				s.reads[i] = ""
			}
		}
		s.mu.Unlock()
	}
	return found, nil
}

// forget drops a conversation whose objects are gone. What is known about its
// rows stays: see translate.
func (s *Store) forget(e *entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now, ok := s.recent.get(e.id); ok && now.version == e.version {
		s.recent.remove(e.id)
	}
}

// Info tells about a sealed conversation.
type Info struct {
	ID string
	// Time is when it was sealed.
	Time time.Time
	// Objects is the number of objects, Bytes what they take in the bucket.
	Objects int
	Bytes   int64
	// Rows and Blobs count what is in them, Shadows the rows that are in the
	// database all the same, since lists need them.
	Rows, Blobs, Shadows uint64
}

func (e *entry) info() Info {
	return Info{
		ID: e.id, Time: e.time, Objects: len(e.objects), Bytes: e.size(), Rows: e.rows, Blobs: e.blobs, Shadows: e.shadows,
	}
}

// Get tells about a sealed conversation, or fails with ErrNotSealed.
func (s *Store) Get(ctx context.Context, id string) (Info, error) {
	e, err := s.entry(ctx, id)
	if err != nil {
		return Info{}, err
	}
	if e == nil {
		return Info{}, fmt.Errorf("%s: %w", id, ErrNotSealed)
	}
	return e.info(), nil
}

// List calls fn for every sealed conversation, in the order of their keys.
func (s *Store) List(ctx context.Context, fn func(Info) error) error {
	return s.each(ctx, func(e *entry) error {
		if e.state != sealed {
			return nil
		}
		return fn(e.info())
	})
}

// page is how many rows of the catalog are read before anything is done with
// them, so that no scan is open meanwhile.
const page = 256

func (s *Store) each(ctx context.Context, fn func(*entry) error) error {
	r := keyspace.Packs()
	for {
		var entries []*entry
		for row, err := range s.rows.Scan(ctx, r, kv.ScanOptions{Limit: page}) {
			if err != nil {
				return fmt.Errorf("list packs: %w", err)
			}
			e, err := decodeEntry(row)
			if err != nil {
				return err
			}
			entries = append(entries, e)
		}
		for _, e := range entries {
			if err := fn(e); err != nil {
				return err
			}
		}
		if len(entries) < page {
			return nil
		}
		r.Start = entries[page-1].key() + "\x00"
	}
}
