// Package cached keeps recently read or written blobs in memory.
//
//	store := cached.New(slow, &cached.Options{MaxBytes: 256 << 20})
//	data, err := store.Get(ctx, id) // from memory if it was here before
//	hits := store.Stats().Hits
//
// Several readers that miss the same blob at once share one read of the inner store;
// if one gives up, the others still get the answer. Every Put and Has goes to the
// inner store, because only it knows what it holds. Streams and blobs larger than an
// eighth of the cache bypass it.
//
// Ids are not verified here: put blob.Checked above.
package cached

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/internal/lru"
	"github.com/stet-dev/stet/meter"
)

// Options configure a cache; nil and the zero value work.
type Options struct {
	// MaxBytes limits the content in memory. The default is 64 MiB.
	MaxBytes int64
	// MaxAbsent is how many ids are remembered as absent, so that looking again costs
	// nothing. The default is none: another process may have stored the blob
	// meanwhile, and this store would not find it until AbsentFor has passed.
	MaxAbsent int
	// AbsentFor is how long an id is remembered as absent. The default is 5 s.
	AbsentFor time.Duration
	// Verify, if set, checks content from the inner store before it is cached, so
	// that one bad read does not stay. Rejected content is still returned:
	// blob.Checked above judges it.
	Verify func(id blob.ID, data []byte) error
	// MeterProvider receives the counter of results; nil measures nothing.
	MeterProvider meter.Provider
}

func (o *Options) withDefaults() Options {
	var opts Options
	if o != nil {
		opts = *o
	}
	if opts.MaxBytes <= 0 {
		opts.MaxBytes = 64 << 20
	}
	if opts.AbsentFor <= 0 {
		opts.AbsentFor = 5 * time.Second
	}
	if opts.Verify == nil {
		opts.Verify = func(blob.ID, []byte) error { return nil }
	}
	return opts
}

// maxPut is the largest content that Put copies into the cache. Copying a larger one
// takes about as long as storing it, and it may never be read.
const maxPut = 32 << 10

// A Put of more than bulk bytes, such as the first capture of a large tree, has more
// content than the cache should keep. Contents of such a Put that are larger than small
// and resemble nothing stored before bypass the cache; otherwise they would evict
// everything, even each other.
const (
	bulk  = 1 << 20
	small = 2 << 10
)

// Store is a caching layer.
type Store struct {
	inner    blob.Store
	maxBlob  int64 // larger ones would evict too many others
	verify   func(blob.ID, []byte) error
	counters *counters

	mu      sync.Mutex // guards what follows
	lru     *lru.Cache[blob.ID, []byte]
	absent  absentees
	flights map[blob.ID]*flight
	puts    uint64 // Puts that have ended; see landed
}

var _ blob.Streamer = (*Store)(nil)

// New returns a cache over inner.
func New(inner blob.Store, o *Options) *Store {
	opts := o.withDefaults()
	return &Store{
		inner:    inner,
		maxBlob:  opts.MaxBytes / 8,
		verify:   opts.Verify,
		counters: newCounters(opts.MeterProvider),
		lru:      lru.New[blob.ID, []byte](opts.MaxBytes),
		absent:   absentees{max: opts.MaxAbsent, keep: opts.AbsentFor},
		flights:  make(map[blob.ID]*flight),
	}
}

// Get implements blob.Store.
func (s *Store) Get(ctx context.Context, id blob.ID) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	if data, ok := s.lru.Get(id); ok {
		s.mu.Unlock()
		s.counters.count(ctx, hit)
		return clone(data), nil // cached content never changes: no lock needed
	}
	if s.absent.has(id) {
		s.mu.Unlock()
		s.counters.count(ctx, negative)
		return nil, blob.NotFound(id)
	}
	f, ok := s.flights[id]
	if ok {
		f.join()
	} else {
		f = s.takeOffLocked(ctx, id)
	}
	s.mu.Unlock()
	if ok {
		s.counters.count(ctx, shared)
	} else {
		s.counters.count(ctx, miss)
	}
	return s.wait(ctx, f)
}

// Peek returns the content of a blob if it is in memory, else nil. It belongs to the
// cache: do not change it.
func (s *Store) Peek(id blob.ID) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	data, _ := s.lru.Get(id)
	return data
}

// clone copies without clearing the memory first. It never returns nil.
func clone(data []byte) []byte { return append([]byte{}, data...) }

// Put implements blob.Store. It always reaches the inner store. Large contents enter
// the cache only when they are read.
func (s *Store) Put(ctx context.Context, blobs ...blob.Blob) error {
	err := s.inner.Put(ctx, blobs...)
	for _, b := range s.afterPut(blobs, err) {
		data := clone(b.Data) // outside the lock: it may take long
		s.mu.Lock()
		s.counters.evicted(s.keepLocked(b.ID, data))
		s.mu.Unlock()
	}
	return err
}

// afterPut updates the cache after a Put and returns the blobs worth keeping.
func (s *Store) afterPut(blobs []blob.Blob, err error) (keep []*blob.Blob) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.puts++
	total := 0
	for i := range blobs {
		total += len(blobs[i].Data)
	}
	for i := range blobs {
		b := &blobs[i]
		s.absent.remove(b.ID)
		switch {
		case err != nil:
			s.lru.Remove(b.ID) // the inner store may or may not have it
		case total > bulk && len(b.Data) > small && b.Like.IsZero():
		case b.Keep == 0 && int64(len(b.Data)) <= min(s.maxBlob, maxPut) && !s.touchLocked(b.ID):
			keep = append(keep, b)
		}
	}
	return keep
}

// Has implements blob.Store. It always calls the inner store.
func (s *Store) Has(ctx context.Context, ids ...blob.ID) ([]bool, error) {
	return s.inner.Has(ctx, ids...)
}

// Flush implements blob.Store. All writes go to the inner store, so its errors are
// complete. After an error the cache is emptied: it must not hide what the inner store
// lost.
func (s *Store) Flush(ctx context.Context) error {
	err := s.inner.Flush(ctx)
	if err != nil && ctx.Err() == nil {
		s.mu.Lock()
		s.lru.Clear()
		s.mu.Unlock()
	}
	return err
}

// Open implements blob.Streamer. It bypasses the cache.
func (s *Store) Open(ctx context.Context, id blob.ID) (io.ReadCloser, error) {
	return blob.Open(ctx, s.inner, id)
}

// PutFrom implements blob.Streamer. It bypasses the cache.
func (s *Store) PutFrom(ctx context.Context, id blob.ID, r io.Reader, size int64) error {
	err := blob.PutFrom(ctx, s.inner, id, r, size)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.puts++
	s.absent.remove(id)
	if err != nil {
		s.lru.Remove(id)
	}
	return err
}

// landed caches the result of a flight and ends it.
func (s *Store) landed(f *flight, data []byte, err error) {
	keep := s.worthKeeping(f.id, data, err)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.flights[f.id] == f {
		delete(s.flights, f.id)
	}
	if keep {
		f.sole = false // the cache shares it from now on
	}
	s.noteLocked(f.id, f.puts, data, err, keep)
	f.data, f.err = data, err
	close(f.done)
}

// worthKeeping reports whether the result of a read belongs in the cache.
func (s *Store) worthKeeping(id blob.ID, data []byte, err error) bool {
	return err == nil && int64(len(data)) <= s.maxBlob && s.verify(id, data) == nil
}

// noteLocked remembers the result of a read that began after a number of Puts. The cache
// takes ownership of data that it keeps.
func (s *Store) noteLocked(id blob.ID, puts uint64, data []byte, err error, keep bool) {
	switch {
	case keep:
		s.counters.evicted(s.keepLocked(id, data))
	case errors.Is(err, blob.ErrNotFound) && puts == s.puts:
		// A Put that ended during our read may have stored the blob just after the
		// inner store looked; then the answer is out of date.
		s.absent.add(id)
	}
}
