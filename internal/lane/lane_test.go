package lane_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stet-dev/stet/internal/lane"
	"github.com/stet-dev/stet/kv"
)

func TestWritersTakeTurns(t *testing.T) {
	var lanes lane.Set[int]
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			l := lanes.Enter("a")
			defer lanes.Leave(l)
			if err := l.Begin(context.Background()); err != nil {
				t.Error(err)
				return
			}
			defer l.End()
			l.Value++ // a race without turns
		})
	}
	l := lanes.Enter("a") // keeps the lane, and its value
	defer lanes.Leave(l)
	wg.Wait()
	if err := l.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Begin(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that gives up: %v", err)
	}
	l.End()
}

func TestUnusedLanesAreDropped(t *testing.T) {
	lanes := lane.Set[int]{Keep: 2}
	held := lanes.Enter("held")
	held.Value = 1
	for i := range 5 {
		l := lanes.Enter(fmt.Sprint(i))
		l.Value = i + 1
		lanes.Leave(l)
	}
	if again := lanes.Enter("held"); again != held {
		t.Error("a lane in use was dropped")
	}
	kept := 0
	for i := range 5 {
		l := lanes.Enter(fmt.Sprint(i))
		if l.Value != 0 {
			kept++
		}
		lanes.Leave(l)
	}
	if kept > 1 {
		t.Errorf("%d unused lanes were kept beside the one in use, of 2", kept)
	}
}

func TestRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		err := lane.Retry(t.Context(), func() error {
			if n++; n < 5 {
				return fmt.Errorf("write: %w", kv.ErrConflict)
			}
			return nil
		})
		if err != nil || n != 5 {
			t.Errorf("%v after %d attempts", err, n)
		}
		if err := lane.Retry(t.Context(), func() error { return kv.ErrConflict }); !errors.Is(err, kv.ErrConflict) {
			t.Errorf("endless conflicts: %v", err)
		}
		broken := errors.New("broken")
		if err := lane.Retry(t.Context(), func() error { return broken }); !errors.Is(err, broken) {
			t.Error(err)
		}
	})
}

func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hints := make(chan struct{}, 1)
		hints <- struct{}{}
		start := time.Now()
		if err := lane.Wait(t.Context(), hints, time.Hour); err != nil || time.Since(start) != 0 {
			t.Errorf("with a hint: %v after %s", err, time.Since(start))
		}
		if err := lane.Wait(t.Context(), hints, time.Hour); err != nil || time.Since(start) != time.Hour {
			t.Errorf("without a hint: %v after %s", err, time.Since(start))
		}
	})
}
