package access

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/stet-dev/stet/fault"
)

// Limits limit what a tenant may use; zero means no limit.
type Limits struct {
	// Bytes limits the stored bytes.
	Bytes int64
	// Requests is how many calls may start per second, and Burst how many at once; a
	// Burst of zero means twice the rate.
	Requests float64
	Burst    int
	// Streams is how many streams may be open at the same time.
	Streams int
}

// ErrExhausted says that a limit is reached; *LimitError says which.
var ErrExhausted = fault.Named(fault.Exhausted, "limit-reached", "limit reached")

// LimitError says which limit was reached and when to try again.
type LimitError struct {
	// Limit is bytes, requests or streams.
	Limit string
	// After is how long to wait before a retry may succeed; zero if that does not depend
	// on time.
	After time.Duration
	text  string
}

func (e *LimitError) Error() string { return e.text }

// Unwrap returns ErrExhausted, which has the class and the reason.
func (e *LimitError) Unwrap() error { return ErrExhausted }

// RetryAfter returns the seconds of the HTTP header, at least 1.
func (e *LimitError) RetryAfter() string {
	return strconv.Itoa(max(1, int(math.Ceil(e.After.Seconds()))))
}

// Meter enforces the limits of one tenant. It is safe for concurrent use.
type Meter struct {
	limits  Limits
	usage   func(context.Context) (int64, error)
	limiter *rate.Limiter // of calls; nil for no limit

	mu       sync.Mutex // guards what follows
	streams  int
	measured int64         // result of usage
	incoming int64         // bytes of calls that have ended since, stored or not
	underway int64         // bytes of running calls, measured or not
	fresh    bool          // usage was measured, and nothing uncounted has changed since
	again    *rate.Limiter // limits measuring for calls that store nothing
}

// NewMeter returns the meter of a tenant. usage returns the stored bytes of the
// tenant; it is called only if the result may matter.
func NewMeter(limits Limits, usage func(context.Context) (int64, error)) *Meter {
	m := &Meter{limits: limits, usage: usage, again: rate.NewLimiter(rate.Every(time.Second/4), 4)}
	if limits.Requests > 0 {
		burst := limits.Burst
		if burst <= 0 {
			burst = max(1, int(math.Ceil(2*limits.Requests)))
		}
		m.limiter = rate.NewLimiter(rate.Limit(limits.Requests), burst)
	}
	return m
}

// Request counts a call.
func (m *Meter) Request() error {
	if m.limiter == nil {
		return nil
	}
	now := time.Now()
	r := m.limiter.ReserveN(now, 1)
	wait := r.DelayFrom(now)
	if r.OK() && wait == 0 {
		return nil
	}
	r.CancelAt(now)
	return &LimitError{Limit: "requests", After: wait, text: fmt.Sprintf(
		"the tenant's limit of %v requests per second is reached; retry in %v", m.limits.Requests, wait.Round(time.Millisecond)+time.Millisecond)}
}

// Stream counts an open stream until end is called.
func (m *Meter) Stream() (end func(), err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.limits.Streams > 0 && m.streams >= m.limits.Streams {
		return nil, &LimitError{Limit: "streams", text: fmt.Sprintf(
			"the tenant's limit of %d open streams is reached; retry after one of them has ended", m.limits.Streams)}
	}
	m.streams++
	return sync.OnceFunc(func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.streams--
	}), nil
}

// Streams returns how many streams are open.
func (m *Meter) Streams() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.streams
}

// Store counts bytes that a call is about to store; the returned function ends the
// call. Incoming bytes are counted in full until they would exceed the limit. Then
// the store is measured, because much of it may have been stored already or
// compressed.
func (m *Meter) Store(ctx context.Context, n int64) (end func(), err error) {
	if m.limits.Bytes <= 0 {
		return func() {}, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock() // also while measuring: other calls would do the same
	if !m.fitsLocked(n) && (!m.fresh || m.incoming > 0 || m.again.Allow()) {
		used, err := m.usage(ctx)
		if err != nil {
			return nil, fmt.Errorf("measure the tenant's store: %w", err)
		}
		m.measured, m.incoming, m.fresh = used, 0, true
	}
	if !m.fitsLocked(n) {
		return nil, &LimitError{Limit: "bytes", text: fmt.Sprintf(
			"the tenant's limit of %d stored bytes is reached (%d in use, %d more sent); delete and collect something, then retry",
			m.limits.Bytes, m.measured, m.incoming+m.underway+n)}
	}
	m.underway += n
	return sync.OnceFunc(func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.underway -= n
		m.incoming += n
	}), nil
}

func (m *Meter) fitsLocked(n int64) bool {
	return m.fresh && n <= m.limits.Bytes-m.measured-m.incoming-m.underway
}

// Changed records that the size of the store may have changed by more than was
// counted: it is measured before more is stored.
func (m *Meter) Changed() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fresh = false
}

// StreamsExhausted returns the error for a limit of streams that is not the
// tenant's.
func StreamsExhausted(text string) *LimitError { return &LimitError{Limit: "streams", text: text} }
