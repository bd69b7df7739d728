// Package cached keeps blobs that were read or written lately in memory.
//
//	store := cached.New(slow, &cached.Options{MaxBytes: 256 << 20})
//	data, err := store.Get(ctx, id) // from memory if it was here before
//	hits := store.Stats().Hits
//
// Several readers that miss the same blob at once share one read of the inner
// store; a reader that gives up leaves the others their answer. Every Put and
// every Has goes to the inner store, because only that one can say what it
// holds. Streams pass by the cache, and so do blobs of more than an eighth of it.
//
// Ids are not verified here: put blob.Checked above.
package cached

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/stet-dev/stet/blob"
)

// Options shape a cache; nil and the zero value work.
type Options struct {
	// MaxBytes bounds the content in memory. The default is 64 MiB.
	MaxBytes int64
	// MaxAbsent is how many ids are remembered as absent, so that asking again
	// costs nothing. The default is none: another process may have stored the
	// blob meanwhile, and this store would deny it until AbsentFor has passed.
	MaxAbsent int
	// AbsentFor is how long an id is remembered as absent. The default is 5 s.
	AbsentFor time.Duration
	// Verify, if set, is asked before content from the inner store is kept, so
	// that a read that went wrong once does not stay wrong. Content that it
	// refuses is still returned: judging it is left to blob.Checked above.
	Verify func(id blob.ID, data []byte) error
	// MeterProvider receives the counter of results; nil means OpenTelemetry's
	// global one.
	MeterProvider metric.MeterProvider
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

// maxPut is the largest content that Put copies into the cache: with a larger one
// that takes about as long as storing it, and perhaps nobody wants it again.
const maxPut = 32 << 10

// A Put of more than bulk bytes brings too much to keep it all, as the first look
// at a large tree does: of that, contents that resemble nothing that was stored
// before and have more than small bytes pass by, lest they push out everything,
// each other included.
const (
	bulk  = 1 << 20
	small = 2 << 10
)

// Store is a caching layer.
type Store struct {
	inner    blob.Store
	maxBlob  int64 // larger ones would push out too many others
	verify   func(blob.ID, []byte) error
	counters *counters

	mu      sync.Mutex // guards what follows
	lru     *lru
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
		lru:      newLRU(opts.MaxBytes),
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
	if data, ok := s.lru.get(id); ok {
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

// Peek returns the content of a blob if it is in memory, else nil. It belongs to
// the cache: nobody may change it.
func (s *Store) Peek(id blob.ID) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	data, _ := s.lru.get(id)
	return data
}

// clone copies without clearing first what is overwritten at once. It never
// returns nil.
func clone(data []byte) []byte { return append([]byte{}, data...) }

// Put implements blob.Store. It always reaches the inner store.
// Large contents enter the cache only when somebody reads them.
func (s *Store) Put(ctx context.Context, blobs ...blob.Blob) error {
	err := s.inner.Put(ctx, blobs...)
	for _, b := range s.settle(blobs, err) {
		data := clone(b.Data) // outside of the lock: it may be long
		s.mu.Lock()
		s.counters.evicted(s.lru.add(b.ID, data))
		s.mu.Unlock()
	}
	return err
}

// settle brings the cache up to date with the end of a Put and returns the blobs
// that are worth keeping.
func (s *Store) settle(blobs []blob.Blob, err error) (keep []*blob.Blob) {
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
			s.lru.remove(b.ID) // whether the inner store has it is not known
		case total > bulk && len(b.Data) > small && b.Like.IsZero():
		case b.Keep == 0 && int64(len(b.Data)) <= min(s.maxBlob, maxPut) && !s.lru.touch(b.ID):
			keep = append(keep, b)
		}
	}
	return keep
}

// Has implements blob.Store. It always asks the inner store.
func (s *Store) Has(ctx context.Context, ids ...blob.ID) ([]bool, error) {
	return s.inner.Has(ctx, ids...)
}

// Flush implements blob.Store. All writes are the inner store's own, so its
// errors are all there are. After one, nothing is served from memory until it
// has been read again: the cache must not hide what the inner store lost.
func (s *Store) Flush(ctx context.Context) error {
	err := s.inner.Flush(ctx)
	if err != nil && ctx.Err() == nil {
		s.mu.Lock()
		s.lru.clear()
		s.mu.Unlock()
	}
	return err
}

// Open implements blob.Streamer. It reads past the cache.
func (s *Store) Open(ctx context.Context, id blob.ID) (io.ReadCloser, error) {
	return blob.Open(ctx, s.inner, id)
}

// PutFrom implements blob.Streamer. It writes past the cache.
func (s *Store) PutFrom(ctx context.Context, id blob.ID, r io.Reader, size int64) error {
	err := blob.PutFrom(ctx, s.inner, id, r, size)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.puts++
	s.absent.remove(id)
	if err != nil {
		s.lru.remove(id)
	}
	return err
}

// landed keeps what a flight brought and ends it.
func (s *Store) landed(f *flight, data []byte, err error) {
	keep := err == nil && int64(len(data)) <= s.maxBlob && s.verify(f.id, data) == nil
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.flights[f.id] == f {
		delete(s.flights, f.id)
	}
	switch {
	case keep:
		f.sole = false // the cache shares it from now on
		s.counters.evicted(s.lru.add(f.id, data))
	case errors.Is(err, blob.ErrNotFound) && f.puts == s.puts:
		// A Put that ended while we asked may have stored the blob just after the
		// inner store had looked; then the answer is out of date.
		s.absent.add(f.id)
	}
	f.data, f.err = data, err
	close(f.done)
}
