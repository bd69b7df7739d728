package blob_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.uber.org/goleak"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/blobtest"
	"github.com/stet-dev/stet/blob/cached"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/blob/metered"
	"github.com/stet-dev/stet/blob/retrying"
	"github.com/stet-dev/stet/blob/writethrough"
	"github.com/stet-dev/stet/meter/otelmeter"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stack is the whole sentence, from the caller down to the disks.
type stack struct {
	blob.Store
	local, remote *memblob.Store
	flaky         *blobtest.Faulty // above remote
	through       *writethrough.Store
}

func openStack(t *testing.T) *stack {
	s := &stack{local: memblob.New(), remote: memblob.New()}
	s.flaky = blobtest.NewFaulty(s.remote)
	quickly := &retrying.Options{InitialWait: time.Microsecond, MaxWait: 10 * time.Microsecond}
	meter := &metered.Options{MeterProvider: otelmeter.New(metric.NewMeterProvider(metric.WithReader(metric.NewManualReader())))}

	verify := writethrough.VerifySum // nothing below changes bytes
	s.through = writethrough.New(s.local, retrying.New(s.flaky, quickly), &writethrough.Options{Verify: verify})
	s.Store = blob.Checked(metered.New(cached.New(retrying.New(s.through, quickly),
		&cached.Options{MaxBytes: 1 << 20, Verify: verify}), metered.Cached, meter))
	t.Cleanup(func() {
		s.flaky.Heal()
		if err := s.through.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// half makes half of the calls of the remote fail, half of those after the work
// was done. Which ones is random, lest two callers take turns so that one of them
// always fails.
func half() func(blobtest.Call) *blobtest.Fault {
	dice := rand.New(rand.NewPCG(1, 2))
	return func(blobtest.Call) *blobtest.Fault {
		if dice.IntN(2) == 0 {
			return nil
		}
		return &blobtest.Fault{Err: blobtest.ErrInjected, Late: dice.IntN(2) == 0}
	}
}

func TestStackKeepsTheContract(t *testing.T) {
	t.Run("healthy", func(t *testing.T) {
		blobtest.Run(t, func(t *testing.T) blob.Store { return openStack(t).Store })
	})
	t.Run("flaky remote", func(t *testing.T) {
		open := func(t *testing.T) blob.Store {
			s := openStack(t)
			s.flaky.On(half())
			return s.Store
		}
		blobtest.RunWith(t, open, &blobtest.Options{MaxBytes: 2 << 20})
		blobtest.RunModel(t, open)
	})
}

// TestStackLosesNothingWhileTheRemoteComesAndGoes has writers go on through
// outages; whatever a successful Flush covered must be on both sides.
func TestStackLosesNothingWhileTheRemoteComesAndGoes(t *testing.T) {
	s := openStack(t)
	var outage sync.Mutex // guards down
	down := false
	s.flaky.FailWhen(func(blobtest.Call) bool { outage.Lock(); defer outage.Unlock(); return down }, nil)
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			for round := range 25 {
				outage.Lock()
				down = (round+worker)%3 == 0
				outage.Unlock()
				b := blob.New(fmt.Appendf(nil, "worker %d, round %d", worker, round))
				if err := s.Put(t.Context(), b); err != nil {
					t.Errorf("put: %v", err)
				}
				if s.Flush(t.Context()) != nil {
					continue
				}
				for side, store := range map[string]*memblob.Store{"local": s.local, "remote": s.remote} {
					if has, err := store.Has(t.Context(), b.ID); err != nil || !has[0] {
						t.Errorf("flush succeeded, but %s lacks %q: %v", side, b.Data, err)
					}
				}
			}
		})
	}
	wg.Wait()
	s.flaky.Heal()
	if err := s.Flush(t.Context()); err != nil {
		t.Errorf("flush after the last outage: %v", err)
	}
	if local, remote := s.local.Len(), s.remote.Len(); local != 100 || remote != 100 {
		t.Errorf("blobs: got %d local and %d remote, want 100 of each", local, remote)
	}
}

func TestStackFindsOutALyingRemote(t *testing.T) {
	for name, fault := range map[string]blobtest.Fault{"flipped": {Corrupt: true}, "truncated": {Truncate: 3}} {
		t.Run(name, func(t *testing.T) {
			s := openStack(t)
			b := blob.New([]byte("only the remote has this"))
			if err := s.remote.Put(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			s.flaky.On(func(blobtest.Call) *blobtest.Fault { return &fault })
			if got, err := s.Get(t.Context(), b.ID); !errors.Is(err, blob.ErrCorrupt) {
				t.Errorf("get: got %q, %v, want ErrCorrupt", got, err)
			}
			s.flaky.Heal()
			if got, err := s.Get(t.Context(), b.ID); err != nil || string(got) != string(b.Data) {
				t.Errorf("get after it told the truth again: got %q, %v, want %q", got, err, b.Data)
			}
		})
	}
}
