package s3api

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"
)

// firstWait is the limit of the wait before the second attempt. That of the others doubles.
const firstWait = time.Second

// A Sender sends requests, and sends those again that fail for a while. Each call has its own
// attempts: one call that fails takes none from another.
type Sender struct {
	HTTP *http.Client
	// MaxAttempts is how often a request is tried. Zero means once.
	MaxAttempts int
	// MaxWait limits the growing waits between attempts, and what a service asks for.
	MaxWait time.Duration

	skew atomic.Int64 // how far the service's clock is ahead, in nanoseconds
}

// Now returns the time of the service, as far as its answers have shown that it is another.
func (s *Sender) Now() time.Time { return time.Now().Add(time.Duration(s.skew.Load())) }

// Do sends a request until an answer is good, or another attempt would be of no use. For each
// attempt, build makes the request for a time. The function read takes the answer and closes
// its body; if it fails, the answer counts as a failure.
func (s *Sender) Do(ctx context.Context, build func(now time.Time) (*http.Request, error), read func(*http.Response) error) error {
	corrected := false
	for attempt := 1; ; attempt++ {
		now := s.Now()
		req, err := build(now)
		if err != nil {
			return err
		}
		res, err := s.attempt(req, read)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !corrected && res != nil && s.correct(res, err, now) {
			// Another attempt even if there is only one: the first had no chance.
			corrected = true
			continue
		}
		if attempt >= s.MaxAttempts || !passing(err) {
			return err
		}
		if err := s.wait(ctx, attempt, res); err != nil {
			return err
		}
	}
}

// attempt returns the answer, if there was any, only for its headers.
func (s *Sender) attempt(req *http.Request, read func(*http.Response) error) (*http.Response, error) {
	res, err := s.HTTP.Do(req)
	if err != nil {
		return nil, unsent(err)
	}
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return res, refusal(res)
	}
	return res, read(res)
}

// wait waits for a random time, so that clients that failed together do not come back
// together.
func (s *Sender) wait(ctx context.Context, attempt int, res *http.Response) error {
	limit := min(firstWait<<min(attempt-1, 20), s.MaxWait)
	timer := time.NewTimer(max(rand.N(limit+1), min(asked(res), s.MaxWait)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// asked returns how long a service asks to wait.
func asked(res *http.Response) time.Duration {
	if res == nil {
		return 0
	}
	text := res.Header.Get("Retry-After")
	if seconds, err := strconv.Atoi(text); err == nil {
		return time.Duration(min(max(seconds, 0), 3600)) * time.Second
	}
	if when, err := http.ParseTime(text); err == nil {
		return max(time.Until(when), 0)
	}
	return 0
}
