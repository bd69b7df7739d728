// Package metered measures how long the calls of a store take and counts failures,
// through a provider of package meter.
//
//	store := metered.New(cached.New(driver, nil), metered.Cached, &metered.Options{MeterProvider: otelmeter.Global()})
//
// Durations are histograms in milliseconds, one for each operation:
//
//	agent_kv.{kind}.get_blob.duration_ms
//	agent_kv.{kind}.set_blob.duration_ms                (Put and PutFrom)
//	agent_kv.{kind}.set_blob_locally_only.duration_ms   (a Put of nothing but LocalOnly blobs)
//	agent_kv.{kind}.has_blob.duration_ms
//	agent_kv.{kind}.open_blob.duration_ms               (until the reader is there)
//	agent_kv.{kind}.flush.duration_ms
//
// Failures are a counter, agent_kv.{kind}.errors, with the attributes op (as
// above) and error (not_found, mismatch, corrupt, cancelled, other). Neither ids
// nor messages become attributes.
package metered

import (
	"context"
	"io"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/meter"
)

// Kinds that stacks are measured under. Others are allowed.
const (
	InMemory     = "in_memory"
	Cached       = "cached"
	Compressed   = "compressed"
	Encrypted    = "encrypted"
	WriteThrough = "writethrough"
	Retry        = "retry"
	Controlled   = "controlled"
	Remote       = "remote"
)

// Options of a metered store; nil and the zero value work.
type Options struct {
	// MeterProvider receives the measurements; nil measures nothing.
	MeterProvider meter.Provider
}

// Store is a measuring layer.
type Store struct {
	inner       blob.Store
	instruments instruments
}

var (
	_ blob.Streamer   = (*Store)(nil)
	_ blob.ManyReader = (*Store)(nil)
)

// New returns a store that measures the calls of inner under the name kind. In kind,
// every character other than a lower-case letter, a digit or an underscore becomes an
// underscore.
func New(inner blob.Store, kind string, opts *Options) *Store {
	if opts == nil {
		opts = &Options{}
	}
	return &Store{inner: inner, instruments: newInstruments(opts.MeterProvider, cleanKind(kind))}
}

// Get implements blob.Store.
func (s *Store) Get(ctx context.Context, id blob.ID) ([]byte, error) {
	begin := time.Now()
	data, err := s.inner.Get(ctx, id)
	s.instruments.record(ctx, opGet, begin, err)
	return data, err
}

// Put implements blob.Store.
func (s *Store) Put(ctx context.Context, blobs ...blob.Blob) error {
	begin := time.Now()
	err := s.inner.Put(ctx, blobs...)
	op := opSet
	if locallyOnly(blobs) {
		op = opSetLocally
	}
	s.instruments.record(ctx, op, begin, err)
	return err
}

func locallyOnly(blobs []blob.Blob) bool {
	for i := range blobs {
		if !blobs[i].LocalOnly {
			return false
		}
	}
	return len(blobs) > 0
}

// Has implements blob.Store.
func (s *Store) Has(ctx context.Context, ids ...blob.ID) ([]bool, error) {
	begin := time.Now()
	has, err := s.inner.Has(ctx, ids...)
	s.instruments.record(ctx, opHas, begin, err)
	return has, err
}

// Flush implements blob.Store.
func (s *Store) Flush(ctx context.Context) error {
	begin := time.Now()
	err := s.inner.Flush(ctx)
	s.instruments.record(ctx, opFlush, begin, err)
	return err
}

// Open implements blob.Streamer. The time that the caller uses the reader is not
// measured.
func (s *Store) Open(ctx context.Context, id blob.ID) (io.ReadCloser, error) {
	begin := time.Now()
	r, err := blob.Open(ctx, s.inner, id)
	s.instruments.record(ctx, opOpen, begin, err)
	return r, err
}

// PutFrom implements blob.Streamer.
func (s *Store) PutFrom(ctx context.Context, id blob.ID, r io.Reader, size int64) error {
	begin := time.Now()
	err := blob.PutFrom(ctx, s.inner, id, r, size)
	s.instruments.record(ctx, opSet, begin, err)
	return err
}

// ReadMany implements blob.ManyReader. Each read is measured.
func (s *Store) ReadMany(ctx context.Context, fn func(blob.Reader) error) error {
	return blob.ReadMany(ctx, s.inner, func(r blob.Reader) error { return fn(measuredReader{s, r}) })
}

type measuredReader struct {
	s *Store
	r blob.Reader
}

func (m measuredReader) Get(ctx context.Context, id blob.ID) ([]byte, error) {
	begin := time.Now()
	data, err := m.r.Get(ctx, id)
	m.s.instruments.record(ctx, opGet, begin, err)
	return data, err
}

func (m measuredReader) Has(ctx context.Context, ids ...blob.ID) ([]bool, error) {
	begin := time.Now()
	has, err := m.r.Has(ctx, ids...)
	m.s.instruments.record(ctx, opHas, begin, err)
	return has, err
}
