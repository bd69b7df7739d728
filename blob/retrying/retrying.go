// Package retrying repeats calls that failed for a transient reason, such as a
// network error.
//
//	store := retrying.New(remote, &retrying.Options{MaxRetries: 5})
//
// Waits grow exponentially, with jitter, and end with the context. Errors that say
// something about the blob or the store itself (absent, corrupt, wrong key, no space, …)
// are returned at once; see Transient. All methods of blob.Store can be repeated safely,
// because content never changes under its name.
//
// A stream is repeated only if its source can seek back.
package retrying

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/stet-dev/stet/blob"
)

// Options configure the retries; nil and the zero value work.
type Options struct {
	// MaxRetries is how often a call is repeated after its first attempt. 0 means
	// 4, a negative number none.
	MaxRetries int
	// Retryable decides which errors are worth another attempt; nil means
	// Transient.
	Retryable func(error) bool
	// InitialWait is the approximate wait before the first retry. The default is 50
	// ms.
	InitialWait time.Duration
	// MaxWait limits the growing waits. The default is 5 s.
	MaxWait time.Duration
	// OnRetry, if set, is called for every failure that will be retried.
	OnRetry func(op string, attempt int, err error)
}

func (o *Options) withDefaults() Options {
	var opts Options
	if o != nil {
		opts = *o
	}
	if opts.MaxRetries == 0 {
		opts.MaxRetries = 4
	}
	opts.MaxRetries = max(opts.MaxRetries, 0)
	if opts.Retryable == nil {
		opts.Retryable = Transient
	}
	if opts.InitialWait <= 0 {
		opts.InitialWait = 50 * time.Millisecond
	}
	if opts.MaxWait <= 0 {
		opts.MaxWait = 5 * time.Second
	}
	if opts.OnRetry == nil {
		opts.OnRetry = func(string, int, error) {}
	}
	return opts
}

// permanent are the errors that retrying cannot fix.
var permanent = []error{
	blob.ErrNotFound, blob.ErrInvalidID, blob.ErrMismatch, blob.ErrCorrupt, blob.ErrWrongKey,
	blob.ErrTooLarge, blob.ErrReadOnly, blob.ErrFull, blob.ErrClosed,
	context.Canceled, context.DeadlineExceeded, errors.ErrUnsupported,
}

// Transient reports whether err may be temporary: neither an error of package blob
// nor the end of a context.
func Transient(err error) bool {
	for _, p := range permanent {
		if errors.Is(err, p) {
			return false
		}
	}
	return err != nil
}

// Store is a retrying layer.
type Store struct {
	inner blob.Store
	opts  Options
}

var _ blob.Streamer = (*Store)(nil)

// New returns a store that repeats failed calls of inner.
func New(inner blob.Store, opts *Options) *Store {
	return &Store{inner: inner, opts: opts.withDefaults()}
}

// Get implements blob.Store.
func (s *Store) Get(ctx context.Context, id blob.ID) ([]byte, error) {
	return retry(ctx, s, "get", func() ([]byte, error) { return s.inner.Get(ctx, id) })
}

// Put implements blob.Store.
func (s *Store) Put(ctx context.Context, blobs ...blob.Blob) error {
	return retryErr(ctx, s, "put", func() error { return s.inner.Put(ctx, blobs...) })
}

// Has implements blob.Store.
func (s *Store) Has(ctx context.Context, ids ...blob.ID) ([]bool, error) {
	return retry(ctx, s, "has", func() ([]bool, error) { return s.inner.Has(ctx, ids...) })
}

// Flush implements blob.Store.
func (s *Store) Flush(ctx context.Context) error {
	return retryErr(ctx, s, "flush", func() error { return s.inner.Flush(ctx) })
}

// Open implements blob.Streamer. Only the opening is repeated: later failures are the
// reader's.
func (s *Store) Open(ctx context.Context, id blob.ID) (io.ReadCloser, error) {
	return retry(ctx, s, "open", func() (io.ReadCloser, error) { return blob.Open(ctx, s.inner, id) })
}

// PutFrom implements blob.Streamer. It repeats only if r can seek, and not for a
// failure of r itself.
func (s *Store) PutFrom(ctx context.Context, id blob.ID, r io.Reader, size int64) error {
	src := &source{r: r}
	if !src.mark() {
		return blob.PutFrom(ctx, s.inner, id, r, size)
	}
	return retryErr(ctx, s, "put", func() error {
		if err := src.rewind(); err != nil {
			return backoff.Permanent(err)
		}
		err := blob.PutFrom(ctx, s.inner, id, src, size)
		if src.failed {
			return backoff.Permanent(err)
		}
		return err
	})
}

func retryErr(ctx context.Context, s *Store, op string, call func() error) error {
	_, err := retry(ctx, s, op, func() (struct{}, error) { return struct{}{}, call() })
	return err
}

// retry makes up to MaxRetries+1 attempts. A call that succeeds at once has no
// overhead.
func retry[T any](ctx context.Context, s *Store, op string, call func() (T, error)) (T, error) {
	var waits *backoff.ExponentialBackOff
	if err := ctx.Err(); err != nil {
		var none T
		return none, err
	}
	for attempt := 1; ; attempt++ {
		value, err := call()
		if err == nil {
			return value, nil
		}
		if attempt > s.opts.MaxRetries || !s.again(err) {
			return value, final(op, attempt, err)
		}
		if waits == nil {
			waits = s.waits()
		}
		if ctx.Err() == nil {
			s.opts.OnRetry(op, attempt, err)
		}
		if ended := sleep(ctx, waits.NextBackOff()); ended != nil {
			return value, fmt.Errorf("%s: %w before a retry: %w", op, ended, err)
		}
	}
}

// again reports whether a failed call is worth another attempt.
func (s *Store) again(err error) bool {
	var never *backoff.PermanentError
	return !errors.As(err, &never) && s.opts.Retryable(err)
}

// final formats the error of the last attempt.
func final(op string, attempts int, err error) error {
	var never *backoff.PermanentError
	if errors.As(err, &never) {
		err = never.Unwrap()
	}
	if attempts > 1 {
		return fmt.Errorf("%s: gave up after %d attempts: %w", op, attempts, err)
	}
	return err
}

// waits returns the sequence of waits of one call. Jitter prevents clients that
// failed together from retrying together.
func (s *Store) waits() *backoff.ExponentialBackOff {
	b := &backoff.ExponentialBackOff{
		InitialInterval:     s.opts.InitialWait,
		RandomizationFactor: backoff.DefaultRandomizationFactor,
		Multiplier:          2,
		MaxInterval:         s.opts.MaxWait,
	}
	b.Reset()
	return b
}

func sleep(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err // select would pick one at random
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
