package awsconfig_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stet-dev/stet/internal/awsconfig"
	"github.com/stet-dev/stet/internal/s3api"
)

var errSource = errors.New("the source is gone")

// clock is the time of a test.
type clock struct{ atomic.Int64 }

func (c *clock) now() time.Time        { return time.Unix(c.Load(), 0) }
func (c *clock) pass(by time.Duration) { c.Add(int64(by / time.Second)) }

// wantEventually waits for a number of calls: keys are replaced beside the callers.
func wantEventually(t *testing.T, calls *atomic.Int64, want int64) {
	t.Helper()
	for calls.Load() < want {
		if t.Context().Err() != nil {
			t.Fatal("the test ended")
		}
		time.Sleep(time.Millisecond)
	}
}

func TestCache(t *testing.T) {
	var now clock
	now.Store(1_000_000)
	var calls atomic.Int64
	var gone atomic.Bool
	get := awsconfig.CachedAt(func(context.Context) (s3api.Keys, error) {
		n := calls.Add(1)
		if gone.Load() {
			return s3api.Keys{}, errSource
		}
		return s3api.Keys{Access: fmt.Sprint(n), Secret: "s", Expires: now.now().Add(time.Hour)}, nil
	}, now.now)
	want := func(access string, err error) {
		t.Helper()
		if got, gotErr := get(t.Context()); got.Access != access || !errors.Is(gotErr, err) {
			t.Errorf("got %s, %v, want %s, %v", got.Access, gotErr, access, err)
		}
	}
	gone.Store(true)
	want("", errSource)
	gone.Store(false)
	want("2", nil)
	now.pass(54 * time.Minute)
	want("2", nil)
	if calls.Load() != 2 {
		t.Errorf("%d calls, want none before it is time", calls.Load()-2)
	}
	// It is time for others. The old ones are valid meanwhile, and if there are no others.
	now.pass(2 * time.Minute)
	gone.Store(true)
	want("2", nil)
	wantEventually(t, &calls, 3)
	now.pass(3 * time.Minute)
	want("2", nil)
	wantEventually(t, &calls, 4)
	now.pass(time.Hour)
	for { // an attempt may be under way that began when the old ones were valid
		if _, err := get(t.Context()); errors.Is(err, errSource) {
			break
		}
	}
	gone.Store(false)
	want(fmt.Sprint(calls.Load()+1), nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := get(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// TestCacheAsksOnce has many ask at once, the first of whom gives up.
func TestCacheAsksOnce(t *testing.T) {
	var calls atomic.Int64
	begun, release := make(chan struct{}), make(chan struct{})
	get := awsconfig.Cached(func(ctx context.Context) (s3api.Keys, error) {
		if calls.Add(1) == 1 {
			close(begun)
		}
		<-release
		return s3api.Keys{Access: "a", Secret: "s"}, ctx.Err()
	})
	ctx, cancel := context.WithCancel(t.Context())
	gaveUp := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		defer close(gaveUp)
		if _, err := get(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("who gave up: got %v", err)
		}
	})
	<-begun
	for range 20 {
		group.Go(func() {
			if got, err := get(t.Context()); err != nil || got.Access != "a" {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
	cancel()
	<-gaveUp
	close(release)
	group.Wait()
	if calls.Load() != 1 {
		t.Errorf("%d calls, want one", calls.Load())
	}
}

// TestShortLivedKeys are valid for less than the usual time before they are replaced, or come
// too late: they are used nevertheless.
func TestShortLivedKeys(t *testing.T) {
	for _, valid := range []time.Duration{4 * time.Minute, -time.Hour} {
		var calls atomic.Int64
		get := awsconfig.Cached(func(context.Context) (s3api.Keys, error) {
			calls.Add(1)
			return s3api.Keys{Access: "a", Secret: "s", Expires: time.Now().Add(valid)}, nil
		})
		for range 10 {
			if got, err := get(t.Context()); err != nil || got.Access != "a" {
				t.Errorf("got %v, %v", got, err)
			}
		}
		if calls.Load() != 1 {
			t.Errorf("valid for %s: %d calls, want one", valid, calls.Load())
		}
	}
}

func TestSourceWithoutKeys(t *testing.T) {
	get := awsconfig.Cached(func(context.Context) (s3api.Keys, error) { return s3api.Keys{}, nil })
	if _, err := get(t.Context()); !errors.Is(err, awsconfig.ErrSettings) {
		t.Errorf("got %v", err)
	}
}
