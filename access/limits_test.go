package access

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func exhausted(t *testing.T, err error, limit string) *LimitError {
	t.Helper()
	var e *LimitError
	if !errors.As(err, &e) || !errors.Is(err, ErrExhausted) || e.Limit != limit || !strings.Contains(e.Error(), "retry") {
		t.Fatalf("got %v, want the limit of %s", err, limit)
	}
	return e
}

func TestRequestsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMeter(Limits{Requests: 10, Burst: 3}, nil)
		for i := range 3 {
			if err := m.Request(); err != nil {
				t.Fatalf("request %d: %v", i, err)
			}
		}
		e := exhausted(t, m.Request(), "requests")
		if e.After != 100*time.Millisecond || e.RetryAfter() != "1" {
			t.Errorf("retry after %v, header %s", e.After, e.RetryAfter())
		}
		time.Sleep(e.After)
		if err := m.Request(); err != nil {
			t.Errorf("after the wait: %v", err)
		}
		exhausted(t, m.Request(), "requests")
	})
}

func TestStreamsAreLimited(t *testing.T) {
	m := NewMeter(Limits{Streams: 2}, nil)
	end, err := m.Stream()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Stream(); err != nil {
		t.Fatal(err)
	}
	_, err = m.Stream()
	exhausted(t, err, "streams")
	end()
	end() // counts once
	if m.Streams() != 1 {
		t.Errorf("%d streams are open, want 1", m.Streams())
	}
	if _, err := m.Stream(); err != nil {
		t.Errorf("after one has ended: %v", err)
	}
}

func TestBytesAreLimited(t *testing.T) {
	ctx, stored, asked := context.Background(), int64(0), 0
	m := NewMeter(Limits{Bytes: 100}, func(context.Context) (int64, error) { asked++; return stored, nil })
	store := func(n int64) error {
		end, err := m.Store(ctx, n)
		if err == nil {
			end()
			end() // counts once
		}
		return err
	}
	if err := store(60); err != nil || asked != 1 {
		t.Fatalf("first: %v, asked %d times", err, asked)
	}
	stored = 30 // compressed
	if err := store(40); err != nil || asked != 1 {
		t.Fatalf("still fits by what came in: %v, asked %d times", err, asked)
	}
	if err := store(50); err != nil || asked != 2 {
		t.Fatalf("fits by what is stored: %v, asked %d times", err, asked)
	}
	stored = 80
	e := exhausted(t, store(30), "bytes")
	if !strings.Contains(e.Error(), "100") || !strings.Contains(e.Error(), "80") {
		t.Errorf("the error says %v", e)
	}
	if err := store(20); err != nil {
		t.Errorf("what fits: %v", err)
	}
	stored = 100
	exhausted(t, store(1), "bytes")
	stored = 10
	m.Changed()
	if err := store(90); err != nil {
		t.Errorf("after something was removed: %v", err)
	}
}

// What a call has sent is not forgotten when the store is measured meanwhile.
func TestBytesUnderWayCount(t *testing.T) {
	ctx := context.Background()
	m := NewMeter(Limits{Bytes: 100}, func(context.Context) (int64, error) { return 0, nil })
	var ends []func()
	for range 4 {
		end, err := m.Store(ctx, 25)
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, end)
	}
	for range 3 {
		m.Changed() // so that it is measured again
		_, err := m.Store(ctx, 1)
		exhausted(t, err, "bytes")
	}
	ends[0]()
	m.Changed()
	if _, err := m.Store(ctx, 25); err != nil {
		t.Errorf("after one has ended: %v", err)
	}
}

func TestAStoreThatCannotBeMeasuredTakesNothing(t *testing.T) {
	broken := errors.New("broken")
	m := NewMeter(Limits{Bytes: 100}, func(context.Context) (int64, error) { return 0, broken })
	if _, err := m.Store(context.Background(), 1); !errors.Is(err, broken) || errors.Is(err, ErrExhausted) {
		t.Errorf("got %v", err)
	}
}

func TestNoLimits(t *testing.T) {
	m := NewMeter(Limits{}, nil)
	for range 1000 {
		_, streamErr := m.Stream()
		_, storeErr := m.Store(context.Background(), 1<<40)
		if err := errors.Join(streamErr, storeErr, m.Request()); err != nil {
			t.Fatal(err)
		}
	}
}
