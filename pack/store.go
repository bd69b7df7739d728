package pack

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/fault"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/internal/lru"
	"github.com/stet-dev/stet/kv"
)

// Errors that callers branch on.
var (
	// ErrArchived says that a conversation is already archived.
	ErrArchived = fault.Named(fault.Conflict, "already-archived", "conversation is archived already")
	// ErrNotArchived says that a conversation is not archived.
	ErrNotArchived = fault.Named(fault.Conflict, "not-archived", "conversation is not archived")
	// ErrChanged says that a conversation was used while it was being archived. It
	// stays as it is.
	ErrChanged = fault.Named(fault.Stale, "changed-while-archived", "conversation changed while it was being archived")
	// ErrEmpty says that there is nothing to archive.
	ErrEmpty = fault.Named(fault.NotFound, "nothing-to-archive", "conversation has no rows to archive")
)

// Options configure a Store; nil and the zero value work.
type Options struct {
	// Prefix begins the keys of all objects; "packs/" by default.
	Prefix string
	// ObjectBytes is the size at which an object is closed and another one started,
	// 32 MiB by default. A larger blob gets its own object.
	ObjectBytes int64
	// Recent is how many archived conversations are remembered as read, so that their
	// blobs can be found; 4096 by default.
	Recent int
	// CacheBytes limits the memory for indexes and, separately, for blocks of
	// objects; 32 MiB each by default.
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

// Driver is a pair of drivers that share their durability, like those of any backend, and
// a bucket.
type Driver struct {
	Blobs   blob.Store
	Rows    kv.Store
	Objects blob.Objects
	// Lister enumerates Blobs. Archiving needs it or Rewriter.
	Lister blob.Lister
	// Rewriter is set if blobs may be replaced and thereby get another base: a pack then
	// needs the bytes and the base of the same moment.
	Rewriter blob.Rewriter
	// Inline, if set, reads a durable blob as Rewriter.Kept does, but reports false for a
	// blob whose content is not in the database itself: that may be too large to hold in
	// memory.
	Inline func(ctx context.Context, id blob.ID) (one blob.Blob, inline bool, err error)
	// Unfinished, if set, removes what killed writers left in the bucket under a prefix
	// before a given time.
	Unfinished func(ctx context.Context, prefix string, before time.Time) (SweepResult, error)
}

// Store moves conversations between a pair of drivers and a bucket. It is safe for
// concurrent use, even by several processes over the same drivers and bucket.
type Store struct {
	blobs   blob.Store // the driver's
	rows    kv.Store   // the driver's
	objects blob.Objects
	driver  Driver
	opts    Options

	takenBytes atomic.Int64 // kept by all archivings; see maxTaken
	hasPacks   atomic.Bool  // an archived conversation was read

	mu     sync.Mutex // guards what follows
	recent *lru.Cache[string, *entry]
	open   *lru.Cache[string, uint64]    // conversations that are not archived at this version of their record
	loaded *lru.Cache[string, *contents] // by the key of the first object
	blocks *lru.Cache[blockKey, []byte]
	busy   map[string]chan struct{} // conversations that this process is bringing back
	reads  [128]string              // guards of rows recently read from the database
	last   int                      // the latest of them
}

// New returns a store over a pair of drivers and a bucket.
func New(d Driver, opts *Options) *Store {
	o := opts.withDefaults()
	return &Store{
		blobs: d.Blobs, rows: d.Rows, objects: d.Objects, driver: d, opts: o,
		recent: keeping[string, *entry](int64(o.Recent)),
		open:   keeping[string, uint64](int64(o.Recent)),
		loaded: keeping[string, *contents](o.CacheBytes),
		blocks: keeping[blockKey, []byte](o.CacheBytes),
		busy:   make(map[string]chan struct{}),
	}
}

// entry reads the row of the catalog of a conversation, or returns nil if it is
// not archived.
func (s *Store) entry(ctx context.Context, id string) (*entry, error) {
	e, err := s.note(ctx, id)
	if err != nil || e == nil || e.state != archived {
		return nil, err
	}
	s.remember(e)
	return e, nil
}

// note is entry, but also returns a conversation that is being archived.
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

// guarded resolves a guard to the archived conversation and the row's shadow, if it has
// one. It returns nil if nothing is archived.
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
		return nil, nil, fmt.Errorf("look for archived row %q: %w", keyspace.Unpacked(guard), err)
	}
	sh, err := decodeShadow(row)
	if err != nil {
		return nil, nil, err
	}
	e, err := s.entry(ctx, sh.conversation)
	if e == nil {
		sh = nil // brought back between the two reads
	}
	return e, sh, err
}

// remember records that an archived conversation was read, because its blobs will be
// next.
func (s *Store) remember(e *entry) {
	s.hasPacks.Store(true)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recent.Add(e.id, e, 1)
}

// isOpen reports whether a conversation is known not to be archived at a version of its
// record.
func (s *Store) isOpen(id string, version uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.open.Get(id)
	return ok && known == version
}

func (s *Store) setOpen(id string, version uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open.Add(id, version, 1)
}

// noteRead remembers that rows were found in the database: their reader will request
// blobs, even if the rows are archived by another node meanwhile.
func (s *Store) noteRead(guard string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reads[s.last] != guard {
		s.last = (s.last + 1) % len(s.reads)
		s.reads[s.last] = guard
	}
}

// lookAgain checks which of the recently read conversations are archived by now, and
// reports whether there are any.
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

// forget drops a conversation whose objects are gone. Information about its rows
// stays: see translate.
func (s *Store) forget(e *entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now, ok := s.recent.Get(e.id); ok && now.version == e.version {
		s.recent.Remove(e.id)
	}
}

// Info describes an archived conversation.
type Info struct {
	ID string
	// Time is when it was archived.
	Time time.Time
	// Objects is the number of objects, Bytes their size in the bucket.
	Objects int
	Bytes   int64
	// Rows and Blobs count their content, Shadows the rows that stay in the database
	// for lists.
	Rows, Blobs, Shadows uint64
}

func (e *entry) info() Info {
	return Info{
		ID: e.id, Time: e.time, Objects: len(e.objects), Bytes: e.size(), Rows: e.rows, Blobs: e.blobs, Shadows: e.shadows,
	}
}

// Get describes an archived conversation, or fails with ErrNotArchived.
func (s *Store) Get(ctx context.Context, id string) (Info, error) {
	e, err := s.entry(ctx, id)
	if err != nil {
		return Info{}, err
	}
	if e == nil {
		return Info{}, fmt.Errorf("%s: %w", id, ErrNotArchived)
	}
	return e.info(), nil
}

// List calls fn for every archived conversation, in the order of their keys.
func (s *Store) List(ctx context.Context, fn func(Info) error) error {
	return s.each(ctx, func(e *entry) error {
		if e.state != archived {
			return nil
		}
		return fn(e.info())
	})
}

// page is how many rows of the catalog are read before they are processed, so that no
// scan is open meanwhile.
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

// keeping returns a cache that holds at least the last item read: the next read most
// likely needs the same one.
func keeping[K comparable, V any](limit int64) *lru.Cache[K, V] {
	c := lru.New[K, V](limit)
	c.KeepLatest = true
	return c
}
