package writethrough_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/blobtest"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/blob/retrying"
	"github.com/stet-dev/stet/blob/writethrough"
)

func TestFlushReturnsAllErrorsOfBothSides(t *testing.T) {
	p := openPair(t, nil)
	localErr, putErr, flushErr := errors.New("local disk"), errors.New("remote put"), errors.New("remote flush")
	p.local.FailNext(blobtest.OpFlush, 1, localErr)
	p.remote.FailNext(blobtest.OpPut, 2, putErr) // also when the flush repeats what had failed before it
	p.remote.FailNext(blobtest.OpFlush, 1, flushErr)
	must(t, p.Put(t.Context(), number(1)))
	err := p.Flush(t.Context())
	p.remote.Heal()
	for _, want := range []error{localErr, putErr, flushErr} {
		if !errors.Is(err, want) {
			t.Errorf("flush: got %v, want also %v", err, want)
		}
	}
}

func TestFailedWritesAreRepeatedByTheNextFlush(t *testing.T) {
	p := openPair(t, nil)
	p.remote.FailWhen(func(c blobtest.Call) bool { return c.Op != blobtest.OpHas }, nil)
	blobs := append(numbers(100), blob.New(make([]byte, 2<<20)))
	must(t, p.Put(t.Context(), blobs...))
	for range 3 {
		if err := p.Flush(t.Context()); !errors.Is(err, blobtest.ErrInjected) {
			t.Fatalf("flush: got %v, want ErrInjected", err)
		}
	}
	if got := p.Stats(); got.Failed != len(blobs) || got.Waiting != 0 || got.WaitingBytes != 0 {
		t.Errorf("stats: got %+v, want %d failed and none waiting", got, len(blobs))
	}
	p.remote.Heal()
	must(t, p.Flush(t.Context()))
	wantHas(t, "remote", p.remote, true, blobs...)
	if got := p.Stats(); got != (writethrough.Stats{}) {
		t.Errorf("stats: got %+v, want nothing left", got)
	}
}

// TestBadBlobDoesNotKeepGoodOnesBack has one blob fail each time, with an error
// that does not say whose fault it is.
func TestBadBlobDoesNotKeepGoodOnesBack(t *testing.T) {
	for _, cause := range []error{blob.ErrTooLarge, blobtest.ErrInjected} {
		p := openPair(t, nil)
		blobs := numbers(50)
		bad := blobs[7]
		p.remote.FailWhen(func(c blobtest.Call) bool {
			return c.Op == blobtest.OpPut && slices.Contains(c.IDs, bad.ID)
		}, cause)
		must(t, p.Put(t.Context(), blobs...))
		for range 2 { // the first may end early, in case the remote is down
			if err := p.Flush(t.Context()); !errors.Is(err, cause) {
				t.Fatalf("flush: got %v, want %v", err, cause)
			}
		}
		wantHas(t, "remote", p.remote, false, bad)
		wantHas(t, "remote", p.remote, true, slices.Delete(blobs, 7, 8)...)
		p.remote.Heal()
	}
}

func TestFlushOfAHugeBacklogEndsSoonWhenTheRemoteIsDown(t *testing.T) {
	p := openPair(t, &writethrough.Options{MaxItems: 10_000})
	p.remote.FailWhen(func(c blobtest.Call) bool { return c.Op == blobtest.OpPut }, nil)
	must(t, p.Put(t.Context(), numbers(5000)...))
	if err := p.Flush(t.Context()); err == nil {
		t.Fatal("flush: got no error")
	}
	before := p.remote.Calls(blobtest.OpPut)
	if err := p.Flush(t.Context()); !errors.Is(err, blobtest.ErrInjected) {
		t.Fatalf("flush: got %v, want ErrInjected", err)
	}
	if got := p.remote.Calls(blobtest.OpPut) - before; got > 20 {
		t.Errorf("attempts at a remote that is down: got %d, want at most 20", got)
	}
	p.remote.Heal()
	must(t, p.Flush(t.Context()))
	wantHas(t, "remote", p.remote, true, number(0), number(2500), number(4999))
}

func TestBaseArrivesBeforeItsDependants(t *testing.T) {
	p := openPair(t, &writethrough.Options{MaxItems: 5})
	previous := number(0)
	must(t, p.Put(t.Context(), previous))
	for i := range 100 { // memblob refuses a blob whose base is absent
		b := number(i + 1)
		b.Base = previous.ID
		must(t, p.Put(t.Context(), b))
		previous = b
	}
	must(t, p.Flush(t.Context()))
	wantHas(t, "remote", p.remote, true, previous)
}

func TestBlobThatTheLocalStoreLostIsReportedOnce(t *testing.T) {
	ctx := t.Context()
	for name, b := range map[string]blob.Blob{"small": number(1), "large": blob.New(make([]byte, 2<<20))} {
		t.Run(name, func(t *testing.T) {
			local, remote := memblob.New(), blobtest.NewFaulty(memblob.New())
			s := open(t, local, remote, nil)
			// The remote stays down until the flush is over: the flush repeats what the
			// sender has tried before it, and must not succeed with that.
			remote.FailWhen(func(c blobtest.Call) bool { return c.Op == blobtest.OpPut || c.Op == blobtest.OpPutFrom }, nil)
			must(t, s.Put(ctx, b))
			if err := s.Flush(ctx); !errors.Is(err, blobtest.ErrInjected) {
				t.Fatalf("flush: got %v, want ErrInjected", err)
			}
			remote.Heal()
			generation, err := local.Begin(ctx)
			must(t, err)
			_, err = local.Sweep(ctx, generation, blob.SweepOptions{Live: func(blob.ID) bool { return false }})
			must(t, err)
			if err := s.Flush(ctx); !errors.Is(err, blob.ErrNotFound) {
				t.Errorf("flush after the sweep: got %v, want ErrNotFound", err)
			}
			if err := s.Flush(ctx); err != nil {
				t.Errorf("second flush after the sweep: got %v, want success", err)
			}
		})
	}
}

func TestFullQueueSlowsPutDown(t *testing.T) {
	for name, opts := range map[string]*writethrough.Options{
		"items": {MaxItems: 3},
		"bytes": {MaxBytes: 3 * int64(len(number(1).Data))},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := openPair(t, opts)
				p.remote.On(func(c blobtest.Call) *blobtest.Fault { return &blobtest.Fault{Delay: time.Hour} })
				begin := time.Now()
				must(t, p.Put(t.Context(), numbers(3)...))
				if took := time.Since(begin); took != 0 {
					t.Errorf("put into an empty queue took %s, want no time", took)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if err := p.Put(ctx, number(4)); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("put into a full queue: got %v, want the deadline", err)
				}
				wantHas(t, "local", p.local, true, number(4))
				must(t, p.Put(t.Context(), number(5)))
				if took := time.Since(begin); took < 59*time.Minute {
					t.Errorf("put into a full queue took %s, want it to wait for the remote", took)
				}
			})
		})
	}
}

func TestTooManyFailuresFailThePut(t *testing.T) {
	p := openPair(t, &writethrough.Options{MaxFailed: 10})
	p.remote.FailWhen(func(c blobtest.Call) bool { return c.Op == blobtest.OpPut }, nil)
	must(t, p.Put(t.Context(), numbers(10)...))
	if err := p.Flush(t.Context()); err == nil {
		t.Fatal("flush: got no error")
	}
	if err := p.Put(t.Context(), number(11)); !errors.Is(err, blobtest.ErrInjected) {
		t.Errorf("put: got %v, want ErrInjected", err)
	}
	must(t, p.Put(t.Context(), number(1))) // repeating what failed is welcome
	p.remote.Heal()
	must(t, p.Flush(t.Context()))
	must(t, p.Put(t.Context(), number(11)))
}

func TestFlushEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := openPair(t, nil)
		p.remote.On(func(blobtest.Call) *blobtest.Fault { return &blobtest.Fault{Delay: time.Hour} })
		must(t, p.Put(t.Context(), number(1)))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := p.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("flush: got %v, want the deadline", err)
		}
		must(t, p.Flush(t.Context()))
	})
}

func TestCloseDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local, remote := memblob.New(), blobtest.NewFaulty(memblob.New())
		remote.On(func(blobtest.Call) *blobtest.Fault { return &blobtest.Fault{Delay: time.Second} })
		s := writethrough.New(local, remote, nil)
		must(t, s.Put(t.Context(), numbers(200)...))
		must(t, s.Close(t.Context()))
		must(t, s.Close(t.Context()))
		wantHas(t, "remote", remote, true, numbers(200)...)
		if err := s.Put(t.Context(), number(1)); !errors.Is(err, blob.ErrClosed) {
			t.Errorf("put after close: got %v, want ErrClosed", err)
		}
		if err := s.PutFrom(t.Context(), number(1).ID, bytes.NewReader(nil), 0); !errors.Is(err, blob.ErrClosed) {
			t.Errorf("put from after close: got %v, want ErrClosed", err)
		}
		must(t, s.Flush(t.Context()))
	})
}

func TestCloseSaysWhatItGaveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		remote := blobtest.NewFaulty(memblob.New())
		remote.On(func(blobtest.Call) *blobtest.Fault { return &blobtest.Fault{Delay: time.Hour} })
		s := writethrough.New(memblob.New(), remote, nil)
		must(t, s.Put(t.Context(), numbers(200)...))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := s.Close(ctx)
		if want := "close: 200 blobs not written to remote"; !errors.Is(err, context.DeadlineExceeded) ||
			!bytes.Contains([]byte(err.Error()), []byte(want)) {
			t.Errorf("close: got %v, want the deadline and %q", err, want)
		}
		if err := s.Flush(t.Context()); !errors.Is(err, blob.ErrClosed) {
			t.Errorf("flush after a close that gave up: got %v, want ErrClosed", err)
		}
	})
}

func TestASecondCloseEndsWithItsOwnContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		remote := blobtest.NewFaulty(memblob.New())
		remote.On(func(blobtest.Call) *blobtest.Fault { return &blobtest.Fault{Delay: time.Hour} })
		s := writethrough.New(memblob.New(), remote, nil)
		must(t, s.Put(t.Context(), number(1)))
		begin, first := time.Now(), make(chan error)
		go func() { first <- s.Close(t.Context()) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.Close(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != time.Second {
			t.Errorf("second close: got %v after %s, want the deadline after a second", err, time.Since(begin))
		}
		must(t, <-first)
	})
}

func TestConcurrentFlushesAllWaitForWhatWasPut(t *testing.T) {
	p := openPair(t, &writethrough.Options{MaxItems: 8})
	calls := 0
	p.remote.On(func(c blobtest.Call) *blobtest.Fault {
		if calls++; c.Op == blobtest.OpPut && calls%5 == 0 {
			return &blobtest.Fault{Err: blobtest.ErrInjected}
		}
		return nil
	})
	done := make(chan error, 8)
	for worker := range 8 {
		go func() {
			done <- func() error {
				for i := range 30 {
					b := number(worker*1000 + i)
					if err := p.Put(context.Background(), b); err != nil {
						return err
					}
					if p.Flush(context.Background()) != nil {
						continue // some blob, perhaps another worker's, did not make it
					}
					has, err := p.remote.Has(context.Background(), b.ID)
					if err != nil || !has[0] {
						return fmt.Errorf("flush succeeded, but the remote lacks %q: %v", b.Data, err)
					}
				}
				return nil
			}()
		}()
	}
	for range 8 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	p.remote.Heal()
	must(t, p.Flush(t.Context()))
}

func TestLargeBlobsAreRepeatedByARetryingRemote(t *testing.T) {
	remote := blobtest.NewFaulty(memblob.New())
	remote.FailNext(blobtest.OpPutFrom, 1, nil)
	remote.On(func(c blobtest.Call) *blobtest.Fault {
		if c.Op == blobtest.OpPutFrom && c.NthOp == 2 {
			return &blobtest.Fault{Err: blobtest.ErrInjected, Late: true, DropWrite: true}
		}
		return nil
	})
	s := open(t, memblob.New(), retrying.New(remote, &retrying.Options{InitialWait: time.Microsecond}), nil)
	large := blob.New(bytes.Repeat([]byte("large"), 1<<20))
	must(t, s.Put(t.Context(), large))
	must(t, s.Flush(t.Context()))
	wantHas(t, "remote", remote, true, large)
}

// TestARemoteBehindNeverHoldsUpItsStore is for a caller that sends by itself what
// the remote lacks.
func TestARemoteBehindNeverHoldsUpItsStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := openPair(t, &writethrough.Options{Behind: true, MaxItems: 3, MaxFailed: 1})
		p.remote.On(func(c blobtest.Call) *blobtest.Fault {
			return &blobtest.Fault{Delay: time.Hour, Err: blobtest.ErrInjected}
		})
		begin := time.Now()
		must(t, p.Put(t.Context(), numbers(100)...))
		must(t, p.Flush(t.Context()))
		wantHas(t, "store", p, false, number(1000))
		if took := time.Since(begin); took != 0 {
			t.Errorf("a remote that does not answer took %s, want no time", took)
		}
		if _, err := p.Get(t.Context(), number(1000).ID); !errors.Is(err, blob.ErrNotFound) || !errors.Is(err, blobtest.ErrInjected) {
			t.Errorf("get what is not here: got %v, want ErrNotFound and ErrInjected", err)
		}
		if err := p.Drain(t.Context()); !errors.Is(err, blobtest.ErrInjected) {
			t.Errorf("drain: got %v, want ErrInjected", err)
		}
		if got := p.Stats(); got.Waiting != 0 || got.Failed != 0 {
			t.Errorf("stats: got %+v, want nothing left to this store", got)
		}
		p.remote.Heal()
		must(t, p.Put(t.Context(), number(1)))
		must(t, p.Drain(t.Context()))
		wantHas(t, "remote", p.remote, true, number(1))
	})
}
