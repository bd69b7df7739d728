// Package writethrough writes blobs to a local store at once and to a remote store
// soon after.
//
//	store := writethrough.New(local, retrying.New(remote, nil), nil)
//	defer store.Close(ctx)
//	err := store.Put(ctx, b)   // local has it, the remote gets it in the background
//	err = store.Flush(ctx)     // both have it for good
//
// Get tries the local store first. A blob that only the remote has is copied to the local
// store. A blob with LocalOnly is never sent. Remote writes wait in a bounded queue,
// which slows Put down when it is full. They are sent in the order of the Puts, so the
// remote never gets a blob before its base. Their content is read back from the local
// store when it is sent, so a long queue needs no memory. A failed remote write is
// remembered, reported by Flush and retried by the next Flush.
//
// The queue does not survive the process: only Flush and Close promise anything about the
// remote. A caller that keeps its own record of what the remote lacks (package mirror)
// sets Options.Behind; then the remote never slows down or fails a write. Bytes are
// passed on unchanged; layers that check or seal them belong above.
package writethrough

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/stet-dev/stet/blob"
)

// Options configure a store; nil and the zero value work.
type Options struct {
	// MaxItems and MaxBytes limit the queue of remote writes. The defaults are 1024
	// blobs and 64 MiB.
	MaxItems int
	MaxBytes int64
	// MaxFailed is how many failed remote writes are remembered for the next Flush.
	// Beyond it Put fails, so that a dead remote does not go unnoticed for days. The
	// default is 65536.
	MaxFailed int
	// Behind means that the caller itself sends what the remote lacks, even after a
	// restart, and the queue is only a shortcut. Put then skips the queue when it is
	// full, a failed write is left to the caller, and Has and Flush concern the local
	// store alone: an unreachable remote must not fail them. Drain waits for the queue.
	Behind bool
	// Verify, if set, checks bytes from the remote before they are stored locally.
	// Otherwise a remote that returns wrong bytes would damage the local store. Use
	// VerifySum if this layer sees plain content.
	Verify func(id blob.ID, data []byte) error
}

func (o *Options) withDefaults() Options {
	var opts Options
	if o != nil {
		opts = *o
	}
	if opts.MaxItems <= 0 {
		opts.MaxItems = 1024
	}
	if opts.MaxBytes <= 0 {
		opts.MaxBytes = 64 << 20
	}
	if opts.MaxFailed <= 0 {
		opts.MaxFailed = 1 << 16
	}
	if opts.Verify == nil {
		opts.Verify = func(blob.ID, []byte) error { return nil }
	}
	return opts
}

// VerifySum is an Options.Verify for content that is neither sealed nor
// compressed.
func VerifySum(id blob.ID, data []byte) error {
	if got := blob.Sum(data); got != id {
		return blob.Corrupt(id, "the remote returned content with SHA-256 %s", got)
	}
	return nil
}

// Store is a write-through layer. The caller must close it.
type Store struct {
	local, remote blob.Store
	opts          Options
	stop          context.CancelFunc // ends the sender
	stopped       chan struct{}      // closed when the sender has ended
	notKept       atomic.Uint64

	mu      sync.Mutex // guards what follows
	queue   queue
	closed  bool
	changed chan struct{} // closed and replaced whenever queue or closed change
}

var _ blob.Streamer = (*Store)(nil)

// New returns a store over local and remote. The local store must keep its blobs; a
// cache is not enough.
func New(local, remote blob.Store, opts *Options) *Store {
	// The sender works for all callers, so it has its own context.
	ctx, stop := context.WithCancel(context.Background())
	s := &Store{
		local: local, remote: remote, opts: opts.withDefaults(),
		stop: stop, stopped: make(chan struct{}), changed: make(chan struct{}),
		queue: queue{items: make(map[blob.ID]*item), behind: opts != nil && opts.Behind},
	}
	go s.send(ctx)
	return s
}

// Get implements blob.Store.
func (s *Store) Get(ctx context.Context, id blob.ID) ([]byte, error) {
	data, localErr := s.local.Get(ctx, id)
	if !elsewhere(localErr) {
		return data, localErr
	}
	data, err := s.remote.Get(ctx, id)
	if err != nil {
		return nil, s.neither("get", localErr, err)
	}
	if err := s.keep(ctx, id, data); err != nil {
		return nil, err
	}
	return data, nil
}

// elsewhere reports whether the remote may have what the local store cannot return.
func elsewhere(err error) bool {
	return errors.Is(err, blob.ErrNotFound) || errors.Is(err, blob.ErrCorrupt)
}

// neither returns the error for a blob that the remote cannot supply. If the local copy
// is damaged, callers must see that: a remote without the blob does not make it absent.
// With Options.Behind a blob also counts as absent while the remote is unreachable,
// because callers that would then store it should go on; the error says both.
func (s *Store) neither(op string, local, remote error) error {
	switch {
	case errors.Is(local, blob.ErrCorrupt):
		return fmt.Errorf("%w (%s from remote: %v)", local, op, remote)
	case s.opts.Behind && !errors.Is(remote, blob.ErrNotFound):
		return fmt.Errorf("%w; %s from remote: %w", local, op, remote)
	}
	return fmt.Errorf("%s from remote: %w", op, remote)
}

// keep stores content from the remote locally, in place of a damaged copy if the local
// store repairs (see blob.Repairing). If that fails, for example because the
// local store is full, Get still succeeds: the remote has the content, and the
// failure is counted.
func (s *Store) keep(ctx context.Context, id blob.ID, data []byte) error {
	if err := s.opts.Verify(id, data); err != nil {
		return err
	}
	if err := s.local.Put(ctx, blob.Blob{ID: id, Data: data}); err != nil {
		s.notKept.Add(1)
	}
	return nil
}

// Put implements blob.Store.
func (s *Store) Put(ctx context.Context, blobs ...blob.Blob) error {
	if s.isClosed() {
		return blob.ErrClosed
	}
	if err := s.putLocal(ctx, blobs); err != nil {
		return err
	}
	for i := range blobs {
		b := &blobs[i]
		if b.LocalOnly {
			continue
		}
		if err := s.enqueue(ctx, item{id: b.ID, base: b.Base, size: b.Keep + int64(len(b.Data))}); err != nil {
			return err
		}
	}
	return nil
}

// putLocal stores blobs locally. If one of them extends a blob that only the remote has,
// the blobs are put whole.
func (s *Store) putLocal(ctx context.Context, blobs []blob.Blob) error {
	err := s.local.Put(ctx, blobs...)
	extends := func(b blob.Blob) bool { return b.Keep > 0 }
	if !errors.Is(err, blob.ErrNotFound) || !slices.ContainsFunc(blobs, extends) {
		return err
	}
	whole := make([]blob.Blob, len(blobs))
	for i := range blobs {
		if whole[i], err = blob.Whole(ctx, s, blobs[i]); err != nil {
			return err
		}
	}
	return s.local.Put(ctx, whole...)
}

// Has implements blob.Store. It reports whether Get would find each blob or, with
// Options.Behind, whether the local store has it, as a commit that names it needs.
func (s *Store) Has(ctx context.Context, ids ...blob.ID) ([]bool, error) {
	has, err := s.local.Has(ctx, ids...)
	if err != nil || s.opts.Behind {
		return has, err
	}
	var absent []blob.ID
	for i, id := range ids {
		if !has[i] {
			absent = append(absent, id)
		}
	}
	if len(absent) == 0 {
		return has, nil
	}
	there, err := s.remote.Has(ctx, absent...)
	if err != nil {
		return nil, fmt.Errorf("ask remote: %w", err)
	}
	for i := range has {
		if !has[i] {
			has[i], there = there[0], there[1:]
		}
	}
	return has, nil
}

// Flush implements blob.Store. It retries failed remote writes, waits for all queued
// ones, and returns every error of both sides. With Options.Behind it flushes the local
// store alone.
func (s *Store) Flush(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	local := s.local.Flush(ctx)
	if local != nil {
		local = fmt.Errorf("flush local: %w", local)
	}
	if s.opts.Behind {
		return local
	}
	return errors.Join(local, s.Drain(ctx))
}

// Drain retries failed remote writes, waits for all queued ones, and flushes the
// remote. It returns every error of the remote.
func (s *Store) Drain(ctx context.Context) error {
	sent := s.drain(ctx)
	remote := s.remote.Flush(ctx)
	if remote != nil {
		remote = fmt.Errorf("flush remote: %w", remote)
	}
	return errors.Join(sent, remote)
}

// peek is how much of a remote stream is read ahead, to store the blob locally if it is
// no longer than that.
const peek = 1 << 20

// Open implements blob.Streamer. A blob of up to 1 MiB that only the remote has is stored
// locally; a larger one is passed through. Damage in the local copy that is found after
// Open is an error of the reader: some bytes have already been returned.
func (s *Store) Open(ctx context.Context, id blob.ID) (io.ReadCloser, error) {
	r, localErr := blob.Open(ctx, s.local, id)
	if !elsewhere(localErr) {
		return r, localErr
	}
	r, err := blob.Open(ctx, s.remote, id)
	if err != nil {
		return nil, s.neither("open", localErr, err)
	}
	head, err := io.ReadAll(io.LimitReader(r, peek+1))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read from remote: %w", err), r.Close())
	}
	if len(head) > peek {
		return struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(head), r), r}, nil
	}
	if err := errors.Join(r.Close(), s.keep(ctx, id, head)); err != nil {
		return nil, err
	}
	return io.NopCloser(bytes.NewReader(head)), nil
}

// PutFrom implements blob.Streamer.
func (s *Store) PutFrom(ctx context.Context, id blob.ID, r io.Reader, size int64) error {
	if s.isClosed() {
		return blob.ErrClosed
	}
	if err := blob.PutFrom(ctx, s.local, id, r, size); err != nil {
		return err
	}
	return s.enqueue(ctx, item{id: id, size: size})
}

// Close flushes both sides and ends the background work; later writes fail with
// blob.ErrClosed. If ctx ends first, queued writes are dropped and the error says so.
// With Options.Behind it drops them at once and flushes the local store. Neither store is
// closed.
func (s *Store) Close(ctx context.Context) error {
	s.mu.Lock()
	already := s.closed
	s.closed = true
	s.changeLocked()
	s.mu.Unlock()
	if already {
		select {
		case <-s.stopped:
			return nil
		case <-ctx.Done(): // the first Close may wait longer
			return ctx.Err()
		}
	}
	err := s.Flush(ctx)
	s.stop()
	<-s.stopped
	if left := s.Stats(); left.Waiting+left.Failed > 0 && !s.opts.Behind {
		err = errors.Join(err, fmt.Errorf("close: %d blobs not written to remote", left.Waiting+left.Failed))
	}
	return err
}

// Stats count outstanding work.
type Stats struct {
	// Waiting blobs, and their bytes, are queued for the remote.
	Waiting      int
	WaitingBytes int64
	// Failed remote writes will be retried by the next Flush.
	Failed int
	// NotKept counts blobs from the remote that could not be stored locally.
	NotKept uint64
}

// Stats returns the current counts.
func (s *Store) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := &s.queue
	return Stats{
		Waiting:      q.waiting,
		WaitingBytes: q.bytes,
		Failed:       len(q.items) - q.waiting,
		NotKept:      s.notKept.Load(),
	}
}

func (s *Store) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// changeLocked wakes all goroutines that wait for the queue.
func (s *Store) changeLocked() {
	close(s.changed)
	s.changed = make(chan struct{})
}
