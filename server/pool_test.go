package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/kv/memkv"
)

// testPool is a pool over memory that counts what is open.
type testPool struct {
	*pool
	open, most, opens atomic.Int64
	fail              atomic.Bool
}

func newTestPool(t *testing.T, limit int, keep time.Duration) *testPool {
	t.Helper()
	p := &testPool{}
	p.pool = &pool{
		max: limit, keep: keep, logger: slog.New(slog.DiscardHandler), sites: make(map[string]*site), count: func(int) {},
		open: func(ctx context.Context, s *site) (err error) {
			if p.fail.Load() {
				return errors.New("broken")
			}
			p.opens.Add(1)
			p.most.Store(max(p.most.Load(), p.open.Add(1)))
			mem := memblob.New()
			s.db, err = stet.New(ctx, stet.Backend{Blobs: mem, Rows: memkv.New(mem), Close: func() error {
				p.open.Add(-1)
				return nil
			}}, nil, nil)
			return err
		},
	}
	return p
}

func TestStoresAreClosedWhenIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTestPool(t, 4, time.Minute)
		s, leave, err := p.enter(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if p.open.Load() != 1 {
			t.Error("a store in use was closed")
		}
		leave()
		time.Sleep(59 * time.Second)
		again, leave, err := p.enter(t.Context(), "a")
		if err != nil || again != s {
			t.Errorf("a store that is open still was opened again: %v", err)
		}
		leave()
		leave() // counts once
		time.Sleep(61 * time.Second)
		synctest.Wait()
		if p.open.Load() != 0 {
			t.Error("an idle store is open")
		}
		if _, leave, err = p.enter(t.Context(), "a"); err != nil || p.opens.Load() != 2 {
			t.Errorf("opened %d times, %v", p.opens.Load(), err)
		}
		leave()
		p.end()
		if p.open.Load() != 0 {
			t.Error("the end left a store open")
		}
		if _, _, err := p.enter(t.Context(), "a"); err == nil {
			t.Error("entered after the end")
		}
	})
}

func TestTheNumberOfOpenStoresIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTestPool(t, 2, time.Hour)
		enter := func(name string) func() {
			t.Helper()
			s, leave, err := p.enter(t.Context(), name)
			if err != nil || s.tenant != name {
				t.Fatalf("%s: %v", name, err)
			}
			return leave
		}
		a, b := enter("a"), enter("b")
		if _, _, err := p.enter(t.Context(), "c"); !errors.Is(err, errCrowded) {
			t.Errorf("a third: %v", err)
		}
		b()
		time.Sleep(time.Second)
		a()
		c := enter("c") // in place of b, which was left first
		before := p.opens.Load()
		enter("a")()
		if p.opens.Load() != before {
			t.Error("a was closed, though b was idle for longer")
		}
		c()
		if p.most.Load() > 2 {
			t.Errorf("%d were open at once", p.most.Load())
		}
		p.end()
	})
}

func TestManyEnterAndLeave(t *testing.T) {
	p := newTestPool(t, 3, time.Microsecond)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 200 {
				name := fmt.Sprint("t", (i+j)%5)
				s, leave, err := p.enter(context.Background(), name)
				if errors.Is(err, errCrowded) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				if s.tenant != name {
					t.Errorf("asked for %s, got %s", name, s.tenant)
				}
				if _, err := s.db.Blobs().Has(context.Background()); err != nil {
					t.Errorf("a store in use: %v", err)
				}
				leave()
			}
		})
	}
	wg.Wait()
	p.end()
	if p.open.Load() != 0 {
		t.Errorf("%d stores are open", p.open.Load())
	}
	if p.most.Load() > 3 {
		t.Errorf("%d stores were open at once", p.most.Load())
	}
}

func TestAFailedOpeningIsTriedAgain(t *testing.T) {
	p := newTestPool(t, 2, time.Minute)
	p.fail.Store(true)
	if _, _, err := p.enter(t.Context(), "a"); err == nil {
		t.Fatal("no error")
	}
	p.fail.Store(false)
	_, leave, err := p.enter(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	leave()
	p.end()
}

func TestACallThatGivesUpWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTestPool(t, 2, time.Minute)
		inner, release := p.pool.open, make(chan struct{})
		p.pool.open = func(ctx context.Context, s *site) error {
			<-release
			return inner(ctx, s)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() {
			_, _, err := p.enter(ctx, "a")
			ended <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		close(release)
		_, leave, err := p.enter(t.Context(), "a") // it was opened for the others all the same
		if err != nil || p.opens.Load() != 1 {
			t.Errorf("%v, opened %d times", err, p.opens.Load())
		}
		leave()
		p.end()
	})
}

// A caller that gave up waiting for a store leaves no error behind for the next one.
func TestFailuresThatNobodyWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTestPool(t, 4, time.Minute)
		open, gate := p.pool.open, make(chan struct{})
		p.pool.open = func(ctx context.Context, s *site) error {
			<-gate
			return open(ctx, s)
		}
		p.fail.Store(true)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if _, _, err := p.enter(ctx, "a"); !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v", err)
		}
		close(gate)
		synctest.Wait()
		p.fail.Store(false)
		_, leave, err := p.enter(t.Context(), "a")
		if err != nil {
			t.Fatalf("an old failure: %v", err)
		}
		leave()
		p.end()
	})
}
