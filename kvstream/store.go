package kvstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/sync/semaphore"

	"github.com/stet-dev/stet/blob"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
)

// Options configure a Store; nil and the zero value work.
type Options struct {
	// MaxRequests is how many requests may wait for their answer, and MaxBytes how
	// much content they may carry; a call that exceeds them waits. The defaults
	// are 50 and 16 MiB.
	MaxRequests int
	MaxBytes    int64
	// MaxMessage limits an encoded request and an encoded answer; beyond it calls
	// fail with blob.ErrTooLarge. The default is DefaultMaxMessage.
	MaxMessage int
	// Timeout is how long a request may take, from the call that makes it to its answer:
	// it covers both the wait for room and the wait for the peer. A Put of many blobs
	// sends its requests as there is room. A slow peer thus has longer for all of them,
	// but a peer that has stopped answering fails the whole Put within one Timeout. The
	// default is 30 s.
	Timeout time.Duration
	// KnownFor is how long Has trusts that the peer still has what it stored or
	// returned. 0 means one minute; with a negative value Has always asks the peer.
	KnownFor time.Duration
	// MaxKnown is how many such ids are remembered. The default is 16384.
	MaxKnown int
	// MaxLocalBytes limits the LocalOnly blobs, which stay in memory. Beyond it Put
	// fails with blob.ErrFull. The default is 64 MiB.
	MaxLocalBytes int64
	// Opaque means that a layer above seals or compresses, so content is not named by
	// its SHA-256: it is then not verified here.
	Opaque bool
	// MeterProvider and TracerProvider receive measurements and spans; nil means
	// OpenTelemetry's global ones.
	MeterProvider  metric.MeterProvider
	TracerProvider trace.TracerProvider
}

func (o *Options) withDefaults() Options {
	var opts Options
	if o != nil {
		opts = *o
	}
	setDefault(&opts.MaxRequests, 50)
	setDefault(&opts.MaxBytes, 16<<20)
	setDefault(&opts.MaxMessage, DefaultMaxMessage)
	setDefault(&opts.Timeout, 30*time.Second)
	setDefault(&opts.MaxKnown, 1<<14)
	setDefault(&opts.MaxLocalBytes, 64<<20)
	if opts.KnownFor == 0 {
		opts.KnownFor = time.Minute
	}
	return opts
}

func setDefault[T int | int64 | time.Duration](value *T, def T) {
	if *value <= 0 {
		*value = def
	}
}

// Store is a blob.Store at the other end of a stream.
//
// Put returns once the peer has answered every set, which a Responder does when the
// blobs are durable. Blobs with LocalOnly are not sent: they stay in this process, as
// long as the Store. There is no message to check for a blob: Has remembers what the
// peer recently stored or returned, and gets the rest.
type Store struct {
	opts     Options
	out      Sender[agentv1.KvServerMessage]
	metrics  *instruments
	tracer   trace.Tracer
	requests *semaphore.Weighted
	bytes    *semaphore.Weighted
	wake     chan struct{} // signals the writer that queue is not empty
	closed   chan struct{} // closed when err is set
	done     chan struct{} // closed when the writer has ended

	mu      sync.Mutex // guards what follows
	waiting map[uint32]*call
	queue   []*call // of waiting, not sent yet
	asked   uint64  // requests so far; its low half is the next id
	known   known
	local   local
	stats   Stats
	err     error // why the store is closed
}

var (
	_ blob.Store    = (*Store)(nil)
	_ blob.Streamer = (*Store)(nil)
)

// New returns a store that sends its requests to out. Feed it the answers with Run or
// Deliver, and close it.
func New(out Sender[agentv1.KvServerMessage], opts *Options) *Store {
	o := opts.withDefaults()
	s := &Store{
		opts:     o,
		out:      out,
		metrics:  newInstruments(o.MeterProvider, "remote", OpGet, OpSet, OpFlush),
		tracer:   tracerOf(o.TracerProvider),
		requests: semaphore.NewWeighted(int64(o.MaxRequests)),
		bytes:    semaphore.NewWeighted(o.MaxBytes),
		wake:     make(chan struct{}, 1),
		closed:   make(chan struct{}),
		done:     make(chan struct{}),
		waiting:  make(map[uint32]*call),
		known:    known{lifetime: o.KnownFor, limit: o.MaxKnown},
		local:    local{limit: o.MaxLocalBytes, blobs: make(map[blob.ID][]byte)},
	}
	go s.write()
	return s
}

// Get implements blob.Store.
func (s *Store) Get(ctx context.Context, id blob.ID) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if data, ok := s.localCopy(id); ok {
		return data, nil
	}
	c, err := s.start(ctx, OpGet, id, nil)
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", id, err)
	}
	return s.got(ctx, c)
}

// got waits for the answer to a get and verifies it.
func (s *Store) got(ctx context.Context, c *call) ([]byte, error) {
	data, err := s.await(ctx, c)
	switch {
	case errors.Is(err, blob.ErrNotFound):
		s.remember(c.blob, false)
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("get %s: %w", c.blob, err)
	case !s.opts.Opaque && blob.Sum(data) != c.blob:
		return nil, blob.Corrupt(c.blob, "the peer returned content with another SHA-256")
	}
	s.remember(c.blob, true)
	return data, nil
}

// Put implements blob.Store.
func (s *Store) Put(ctx context.Context, blobs ...blob.Blob) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	wholes, err := s.wholes(ctx, blobs)
	if err != nil {
		return err
	}
	var calls []*call
	for i := range wholes {
		b := &wholes[i]
		if b.LocalOnly {
			err = s.keepLocally(b)
		} else {
			var c *call
			if c, err = s.start(ctx, OpSet, b.ID, b.Data); err == nil {
				calls = append(calls, c)
			}
		}
		if err != nil {
			s.giveUp(calls, err)
			return fmt.Errorf("put %s: %w", b.ID, err)
		}
	}
	return s.stored(ctx, calls)
}

// stored waits for the answers to sets and returns the first failure.
func (s *Store) stored(ctx context.Context, calls []*call) error {
	for i, c := range calls {
		if _, err := s.await(ctx, c); err != nil {
			s.giveUp(calls[i+1:], err)
			return fmt.Errorf("put %s: %w", c.blob, err)
		}
		s.remember(c.blob, true)
	}
	return nil
}

// wholes returns the blobs of a Put, each once and with its whole content.
func (s *Store) wholes(ctx context.Context, blobs []blob.Blob) ([]blob.Blob, error) {
	wholes := make([]blob.Blob, 0, len(blobs))
	place := make(map[blob.ID]int, len(blobs)) // in wholes
	for _, b := range blobs {
		if at, ok := place[b.ID]; ok {
			wholes[at].LocalOnly = wholes[at].LocalOnly && b.LocalOnly
			continue
		}
		if b.Keep < 0 {
			return nil, fmt.Errorf("%w: %s keeps %d bytes of %s", blob.ErrMismatch, b.ID, b.Keep, b.Like)
		}
		if at, ok := place[b.Like]; ok && b.Keep > 0 && b.Keep <= int64(len(wholes[at].Data)) {
			b.Data = append(bytes.Clone(wholes[at].Data[:b.Keep]), b.Data...)
			b.Keep = 0
		}
		whole, err := blob.Whole(ctx, s, b)
		if err != nil {
			return nil, err
		}
		place[b.ID] = len(wholes)
		wholes = append(wholes, whole)
	}
	return wholes, nil
}

// hasAtOnce limits the contents that Has holds in memory.
const hasAtOnce = 4

// Has implements blob.Store. It gets blobs that it has no record of, so it is cheap
// for absent blobs and costly for unknown ones.
func (s *Store) Has(ctx context.Context, ids ...blob.ID) ([]bool, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	present, unsure := s.recall(ids)
	var calls []*call
	for len(unsure) > 0 || len(calls) > 0 {
		if len(unsure) > 0 && len(calls) < hasAtOnce {
			c, err := s.start(ctx, OpGet, unsure[0], nil)
			if err != nil {
				s.giveUp(calls, err)
				return nil, fmt.Errorf("has %s: %w", unsure[0], err)
			}
			calls, unsure = append(calls, c), unsure[1:]
			continue
		}
		c := calls[0]
		calls = calls[1:]
		_, err := s.got(ctx, c)
		if err != nil && !errors.Is(err, blob.ErrNotFound) {
			s.giveUp(calls, err)
			return nil, fmt.Errorf("has %s: %w", c.blob, err)
		}
		present[c.blob] = err == nil
	}
	has := make([]bool, len(ids))
	for i, id := range ids {
		has[i] = present[id]
	}
	return has, nil
}

// Flush implements blob.Store. It waits for pending sets. Blobs of an acknowledged
// Put are at the peer already, even if the stream has ended since.
func (s *Store) Flush(ctx context.Context) error {
	begin := time.Now()
	err := s.flush(ctx)
	s.metrics.record(ctx, OpFlush, begin, err)
	return err
}

func (s *Store) flush(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, c := range s.sets() {
		select {
		case <-c.done:
			if errors.Is(c.err, blob.ErrClosed) {
				return fmt.Errorf("flush: %w", c.err)
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Open implements blob.Streamer.
func (s *Store) Open(ctx context.Context, id blob.ID) (io.ReadCloser, error) {
	data, err := s.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	return io.NopCloser(bytes.NewReader(data)), nil
}

// PutFrom implements blob.Streamer. It does not read content that would not fit into
// a message.
func (s *Store) PutFrom(ctx context.Context, id blob.ID, r io.Reader, size int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if size > int64(s.opts.MaxMessage) {
		return fmt.Errorf("put %s: %w", id, tooLarge("content", int(size), s.opts.MaxMessage))
	}
	data, err := blob.ReadExactly(r, size)
	if err != nil {
		return fmt.Errorf("read content of %s: %w", id, err)
	}
	return s.Put(ctx, blob.Blob{ID: id, Data: data})
}
