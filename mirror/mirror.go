package mirror

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/writethrough"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/meter"
)

// Remote is the place of the copies.
type Remote struct {
	// Name identifies the remote, such as its address without secrets. Each remote has
	// its own mark, so a new one gets everything.
	Name string
	// Blobs stores the copies, under the ids that the local store knows.
	Blobs blob.Store
	// Keep, if set, makes the remote hold blobs for good, on behalf of origin, and
	// returns those that it lacks. Without it Has and Flush of Blobs are used.
	Keep func(ctx context.Context, origin string, ids []blob.ID) (missing []blob.ID, err error)
	// Ready, if set, is called before the first write. If it fails, nothing is sent.
	Ready func(ctx context.Context) error
	// Remove, if set, removes copies; missing ones are not an error.
	Remove func(ctx context.Context, ids []blob.ID) error
}

// Options configure a mirror; nil and the zero value work.
type Options struct {
	// Names returns the stored name of a blob, for keys of rows: an encrypted store does
	// not reveal ids. nil means the id itself.
	Names func(blob.ID) blob.ID
	// MeterProvider receives the size of the backlog; nil measures nothing.
	MeterProvider meter.Provider
}

// Store is a blob.Store whose blobs are copied. The caller must close it.
type Store struct {
	queue    *writethrough.Store
	local    blob.Store
	arrivals blob.Arrivals
	remote   Remote
	opts     Options
	rows     kv.Store
	turn     chan struct{} // held by the running Send
	unmeter  func()
	away     away

	mu     sync.Mutex // guards what follows
	known  known      // what the remote has, by the writes of this process
	failed error      // the last outcome of Send
}

var (
	_ blob.Store    = (*Store)(nil)
	_ blob.Streamer = (*Store)(nil)
)

// New returns a mirror of a local store whose ids are SHA-256 of contents. Attach
// completes it.
func New(local blob.Store, arrivals blob.Arrivals, remote Remote, opts *Options) *Store {
	s := &Store{local: local, arrivals: arrivals, remote: remote, turn: make(chan struct{}, 1)}
	if opts != nil {
		s.opts = *opts
	}
	if s.opts.Names == nil {
		s.opts.Names = func(id blob.ID) blob.ID { return id }
	}
	s.queue = writethrough.New(local, &receiver{s}, &writethrough.Options{Behind: true, Verify: writethrough.VerifySum})
	s.unmeter = s.measure()
	return s
}

// Attach sets the rows that hold the marks. It must be called before any other method.
func (s *Store) Attach(rows kv.Store) { s.rows = rows }

// Name returns the name of the remote.
func (s *Store) Name() string { return s.remote.Name }

// Get implements blob.Store.
func (s *Store) Get(ctx context.Context, id blob.ID) ([]byte, error) { return s.queue.Get(ctx, id) }

// Has implements blob.Store. It concerns the local store, as a commit that names blobs
// does.
func (s *Store) Has(ctx context.Context, ids ...blob.ID) ([]bool, error) {
	return s.queue.Has(ctx, ids...)
}

// Put implements blob.Store.
func (s *Store) Put(ctx context.Context, blobs ...blob.Blob) error {
	if err := s.noteLocal(ctx, blobs); err != nil {
		return err
	}
	return s.queue.Put(ctx, blobs...)
}

// Flush implements blob.Store. It concerns the local store; see Send.
func (s *Store) Flush(ctx context.Context) error { return s.queue.Flush(ctx) }

// Open implements blob.Streamer.
func (s *Store) Open(ctx context.Context, id blob.ID) (io.ReadCloser, error) {
	return s.queue.Open(ctx, id)
}

// PutFrom implements blob.Streamer.
func (s *Store) PutFrom(ctx context.Context, id blob.ID, r io.Reader, size int64) error {
	if err := s.noteLocal(ctx, []blob.Blob{{ID: id}}); err != nil {
		return err
	}
	return s.queue.PutFrom(ctx, id, r, size)
}

// Close ends the background work. Blobs that were not sent are left to the next process.
func (s *Store) Close() error {
	s.unmeter()
	return s.queue.Close(context.Background())
}

// mark is the value of the row that records how far blobs were sent.
type mark struct {
	// Remote is the name of the remote, for display.
	Remote string `json:"remote"`
	// Origin names this store at the remote.
	Origin string `json:"origin"`
	// Mark is that of blob.Arrivals.
	Mark string `json:"mark"`

	version uint64
}

func (s *Store) markKey() string {
	sum := sha256.Sum256([]byte(s.remote.Name))
	return keyspace.Mirrored(hex.EncodeToString(sum[:8]))
}

func (s *Store) readMark(ctx context.Context) (mark, error) {
	row, err := s.rows.Get(ctx, s.markKey())
	if errors.Is(err, kv.ErrNotFound) {
		return mark{Remote: s.remote.Name, Origin: rand.Text()}, nil
	}
	m := mark{version: row.Version}
	if err == nil {
		err = json.Unmarshal(row.Value, &m)
	}
	if err != nil {
		return mark{}, fmt.Errorf("read what was sent to %s: %w", s.remote.Name, err)
	}
	return m, nil
}

// writeMark returns the mark with its new version. After a conflict another process has
// moved it, and the caller goes on from there.
func (s *Store) writeMark(ctx context.Context, m mark) (mark, error) {
	value, err := json.Marshal(m)
	if err != nil {
		return m, err
	}
	key := s.markKey()
	err = s.rows.Commit(ctx, &kv.Batch{
		Expect: []kv.Expect{{Key: key, Version: m.version}}, Set: []kv.Set{{Key: key, Value: value}},
	})
	if err != nil && !errors.Is(err, kv.ErrConflict) {
		return m, fmt.Errorf("record what was sent to %s: %w", s.remote.Name, err)
	}
	return s.readMark(ctx)
}
