package fleet

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/s3blob"
	"github.com/stet-dev/stet/fault"
	"github.com/stet-dev/stet/postgres"
)

const (
	// readyAge is how long a result of Ready is reused: load balancers call often,
	// and all at once.
	readyAge = time.Second
	// readyTime is how long a backend may take to answer.
	readyTime = 3 * time.Second
)

// NotReadyError says which backends of a node cannot be used. Its text names no
// hosts, because anyone may see it; the errors themselves do.
type NotReadyError struct {
	// Database and Bucket are nil if the backend is ready. Tokens says why the tokens in
	// a database that is ready cannot be read: every call is then refused.
	Database, Tokens, Bucket error
}

func (e *NotReadyError) Error() string {
	var parts []string
	if e.Database != nil {
		parts = append(parts, "the database "+why(e.Database))
	}
	if e.Tokens != nil {
		parts = append(parts, "the tokens cannot be read")
	}
	if e.Bucket != nil {
		parts = append(parts, "the bucket "+why(e.Bucket))
	}
	return strings.Join(parts, "; ")
}

func (e *NotReadyError) Unwrap() []error {
	var errs []error
	for _, err := range []error{e.Database, e.Tokens, e.Bucket} {
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

func why(err error) string {
	switch {
	case errors.Is(err, postgres.ErrDenied), errors.Is(err, s3blob.ErrDenied):
		return "denies access"
	case errors.Is(err, blob.ErrReadOnly):
		return "takes no writes"
	case errors.Is(err, s3blob.ErrNoBucket):
		return "does not exist"
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("did not answer within %s", readyTime)
	case errors.Is(err, postgres.ErrUnavailable), errors.Is(err, postgres.ErrNoConnection), errors.Is(err, s3blob.ErrUnavailable):
		return "cannot be reached"
	}
	return "fails"
}

// readiness remembers the last result. Concurrent callers share one.
type readiness struct {
	probe func(context.Context) error

	mu    sync.Mutex // guards what follows
	err   error
	until time.Time
	busy  chan struct{} // closed when the running probe has ended
}

// Ready returns nil if both backends answer and can be used, by a real read of the tables
// and of the tokens, or a NotReadyError.
func (f *Fleet) Ready(ctx context.Context) error { return f.ready.ask(ctx) }

func (r *readiness) ask(ctx context.Context) error {
	r.mu.Lock()
	if r.busy == nil && time.Now().Before(r.until) {
		defer r.mu.Unlock()
		return r.err
	}
	if r.busy == nil {
		// Others wait for it too, so it must not depend on this call's context.
		r.busy = make(chan struct{})
		go r.run(context.WithoutCancel(ctx), r.busy)
	}
	busy := r.busy
	r.mu.Unlock()
	select {
	case <-busy:
	case <-ctx.Done():
		return ctx.Err()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// wait returns once no probe is running.
func (r *readiness) wait() {
	r.mu.Lock()
	busy := r.busy
	r.mu.Unlock()
	if busy != nil {
		<-busy
	}
}

func (r *readiness) run(ctx context.Context, done chan struct{}) {
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	err := r.probe(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err, r.until, r.busy = err, time.Now().Add(readyAge), nil
	close(done)
}

// probe checks both backends at once.
func (f *Fleet) probe(ctx context.Context) error {
	var e NotReadyError
	var work sync.WaitGroup
	work.Go(func() {
		if e.Database = f.db.Ping(ctx); e.Database != nil {
			return
		}
		switch _, err := f.tokenRow.read(ctx); fault.Of(err) {
		case fault.Damaged, fault.WrongKey, fault.NewerFormat:
			e.Tokens = err
		default:
			e.Database = err
		}
	})
	if f.bucket != nil {
		work.Go(func() { e.Bucket = f.bucket.Check(ctx) })
	}
	work.Wait()
	if e.Database == nil && e.Tokens == nil && e.Bucket == nil {
		return nil
	}
	return &e
}
