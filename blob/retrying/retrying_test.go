package retrying_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/blobtest"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/blob/retrying"
)

func TestContract(t *testing.T) {
	open := func(*testing.T) blob.Store { return retrying.New(memblob.New(), nil) }
	blobtest.Run(t, open)
	blobtest.RunModel(t, open)
}

// TestContractOverAFlakyStore has two of three calls fail, half of them after they
// did their work.
func TestContractOverAFlakyStore(t *testing.T) {
	open := func(*testing.T) blob.Store {
		inner := blobtest.NewFaulty(memblob.New())
		dice := rand.New(rand.NewPCG(1, 2))
		inner.On(func(c blobtest.Call) *blobtest.Fault {
			// A source that cannot seek is not repeated, so streams must not fail.
			if dice.IntN(3) == 0 || c.Op == blobtest.OpPutFrom {
				return nil
			}
			return &blobtest.Fault{Err: blobtest.ErrInjected, Late: dice.IntN(2) == 0}
		})
		return retrying.New(inner, &retrying.Options{MaxRetries: 50, InitialWait: time.Microsecond, MaxWait: time.Microsecond})
	}
	blobtest.RunWith(t, open, &blobtest.Options{MaxBytes: 2 << 20})
	blobtest.RunModel(t, open)
}

// calls has every method once.
func calls(s blob.Store, b blob.Blob) map[blobtest.Op]func(context.Context) error {
	return map[blobtest.Op]func(context.Context) error{
		blobtest.OpGet:   func(ctx context.Context) error { _, err := s.Get(ctx, b.ID); return err },
		blobtest.OpPut:   func(ctx context.Context) error { return s.Put(ctx, b) },
		blobtest.OpHas:   func(ctx context.Context) error { _, err := s.Has(ctx, b.ID); return err },
		blobtest.OpFlush: func(ctx context.Context) error { return s.Flush(ctx) },
		blobtest.OpOpen:  func(ctx context.Context) error { _, err := blob.Open(ctx, s, b.ID); return err },
		blobtest.OpPutFrom: func(ctx context.Context) error {
			return blob.PutFrom(ctx, s, b.ID, bytes.NewReader(b.Data), int64(len(b.Data)))
		},
	}
}

func TestAttemptsAreMaxRetriesPlusOne(t *testing.T) {
	for _, tt := range []struct{ maxRetries, attempts int }{{-1, 1}, {0, 5}, {1, 2}, {7, 8}} {
		for op := range calls(nil, blob.Blob{}) {
			t.Run(fmt.Sprintf("%s/%d", op, tt.maxRetries), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					inner := blobtest.NewFaulty(memblob.New())
					inner.FailWhen(func(blobtest.Call) bool { return true }, nil)
					s := retrying.New(inner, &retrying.Options{MaxRetries: tt.maxRetries})
					err := calls(s, blob.New([]byte("content")))[op](t.Context())
					if !errors.Is(err, blobtest.ErrInjected) {
						t.Errorf("got %v, want ErrInjected", err)
					}
					if got := inner.Calls(op); got != tt.attempts || got != inner.Calls() {
						t.Errorf("attempts: got %d, want %d", got, tt.attempts)
					}
				})
			})
		}
	}
}

func TestSucceedsAtTheLastAttempt(t *testing.T) {
	b := blob.New([]byte("content"))
	for op := range calls(nil, blob.Blob{}) {
		synctest.Test(t, func(t *testing.T) {
			inner := blobtest.NewFaulty(memblob.New())
			if err := inner.Put(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			inner.FailNext(op, 4, nil)
			var seen []int
			s := retrying.New(inner, &retrying.Options{OnRetry: func(_ string, attempt int, err error) {
				if !errors.Is(err, blobtest.ErrInjected) {
					t.Errorf("OnRetry: got %v, want ErrInjected", err)
				}
				seen = append(seen, attempt)
			}})
			if err := calls(s, b)[op](t.Context()); err != nil {
				t.Errorf("%s: %v", op, err)
			}
			if got, want := fmt.Sprint(seen), "[1 2 3 4]"; got != want {
				t.Errorf("%s: OnRetry saw attempts %s, want %s", op, got, want)
			}
		})
	}
}

func TestErrorsThatNoRepetitionHeals(t *testing.T) {
	for _, cause := range []error{
		blob.ErrNotFound, blob.ErrMismatch, blob.ErrCorrupt, blob.ErrInvalidID, blob.ErrWrongKey, blob.ErrTooLarge,
		blob.ErrReadOnly, blob.ErrFull, blob.ErrClosed, context.Canceled, context.DeadlineExceeded,
	} {
		for op := range calls(nil, blob.Blob{}) {
			inner := blobtest.NewFaulty(memblob.New())
			inner.FailWhen(func(blobtest.Call) bool { return true }, fmt.Errorf("wrapped: %w", cause))
			s := retrying.New(inner, nil)
			if err := calls(s, blob.New(nil))[op](t.Context()); !errors.Is(err, cause) {
				t.Errorf("%s: got %v, want %v", op, err, cause)
			}
			if got := inner.Calls(); got != 1 {
				t.Errorf("%s after %v: got %d attempts, want 1", op, cause, got)
			}
		}
	}
}

func TestRetryableDecides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		flaky := errors.New("flaky")
		inner := blobtest.NewFaulty(memblob.New())
		inner.FailNext(blobtest.OpFlush, 1, blob.ErrFull)
		inner.FailNext(blobtest.OpFlush, 1, flaky)
		s := retrying.New(inner, &retrying.Options{Retryable: func(err error) bool { return errors.Is(err, blob.ErrFull) }})
		if err := s.Flush(t.Context()); !errors.Is(err, flaky) {
			t.Errorf("flush: got %v, want %v", err, flaky)
		}
		if got := inner.Calls(); got != 2 {
			t.Errorf("attempts: got %d, want 2", got)
		}
	})
}

func TestWaitsGrowAndEndWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var times []time.Duration
		begin := time.Now()
		inner := blobtest.NewFaulty(memblob.New())
		inner.On(func(blobtest.Call) *blobtest.Fault {
			times = append(times, time.Since(begin))
			return &blobtest.Fault{Err: blobtest.ErrInjected}
		})
		s := retrying.New(inner, &retrying.Options{MaxRetries: 1000, InitialWait: time.Second, MaxWait: 10 * time.Second})
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Second)
		defer cancel()
		err := s.Flush(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, blobtest.ErrInjected) {
			t.Errorf("flush: got %v, want the deadline and the last failure", err)
		}
		if got := time.Since(begin); got != 100*time.Second {
			t.Errorf("flush returned after %s, want 100s", got)
		}
		// Jitter is half of a wait: 1 ± 0.5 s first, 10 ± 5 s at the end.
		for i := 1; i < len(times); i++ {
			wait, want := times[i]-times[i-1], min(time.Second<<(i-1), 10*time.Second)
			if wait < want/2 || wait > want*3/2+1 {
				t.Errorf("wait %d: got %s, want %s ± half", i, wait, want)
			}
		}
		if len(times) < 8 || len(times) > 24 {
			t.Errorf("attempts in 100 s: got %d, want about 12", len(times))
		}
	})
}

func TestStreamGoesOnWhereItBegan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := blobtest.NewFaulty(memblob.New())
		inner.FailNext(blobtest.OpPutFrom, 1, nil)
		inner.On(func(c blobtest.Call) *blobtest.Fault {
			if c.NthOp == 2 { // read all of the source, then fail
				return &blobtest.Fault{Err: blobtest.ErrInjected, Late: true, DropWrite: true}
			}
			return nil
		})
		s := retrying.New(inner, nil)
		source := bytes.NewReader([]byte("header|content"))
		if _, err := source.Seek(7, io.SeekStart); err != nil {
			t.Fatal(err)
		}
		b := blob.New([]byte("content"))
		if err := s.PutFrom(t.Context(), b.ID, source, 7); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Get(t.Context(), b.ID); err != nil || string(got) != "content" {
			t.Errorf("get: got %q, %v, want %q", got, err, "content")
		}
		if got := inner.Calls(blobtest.OpPutFrom); got != 3 {
			t.Errorf("attempts: got %d, want 3", got)
		}
	})
}

func TestStreamsThatAreNotRepeated(t *testing.T) {
	broken := errors.New("source is broken")
	for name, tt := range map[string]struct {
		source io.Reader
		want   error
	}{
		"cannot seek":   {struct{ io.Reader }{bytes.NewReader([]byte("content"))}, blobtest.ErrInjected},
		"fails to seek": {badSeeker{bytes.NewReader([]byte("content"))}, blobtest.ErrInjected},
		"fails itself":  {seeking{iotest.ErrReader(broken)}, broken},
	} {
		t.Run(name, func(t *testing.T) {
			inner := blobtest.NewFaulty(memblob.New())
			if tt.want == blobtest.ErrInjected {
				inner.FailNext(blobtest.OpPutFrom, 1, nil)
			}
			s := retrying.New(inner, nil)
			if err := s.PutFrom(t.Context(), blob.Sum([]byte("content")), tt.source, 7); !errors.Is(err, tt.want) {
				t.Errorf("put: got %v, want %v", err, tt.want)
			}
			if got := inner.Calls(); got != 1 {
				t.Errorf("attempts: got %d, want 1", got)
			}
		})
	}
}

type badSeeker struct{ io.Reader }

func (badSeeker) Seek(int64, int) (int64, error) { return 0, errors.New("a pipe") }

type seeking struct{ io.Reader }

func (seeking) Seek(int64, int) (int64, error) { return 0, nil }

func BenchmarkStore(b *testing.B) {
	blobtest.Bench(b, func(*testing.B) blob.Store { return retrying.New(memblob.New(), nil) })
}

func TestLayer(t *testing.T) {
	opts := &retrying.Options{MaxRetries: 2, InitialWait: time.Microsecond, MaxWait: time.Microsecond}
	blobtest.RunLayer(t, func(_ *testing.T, inner blob.Store) blob.Store { return retrying.New(inner, opts) })
}
