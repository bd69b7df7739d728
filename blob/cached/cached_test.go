package cached_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/goleak"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/blobtest"
	"github.com/stet-dev/stet/blob/cached"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/meter/otelmeter"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestContract(t *testing.T) {
	for name, opts := range map[string]*cached.Options{
		"tiny":         {MaxBytes: 5000},
		"with absence": {MaxBytes: 1 << 20, MaxAbsent: 3},
	} {
		t.Run(name, func(t *testing.T) {
			open := func(*testing.T) blob.Store { return cached.New(memblob.New(), opts) }
			blobtest.RunWith(t, open, &blobtest.Options{MaxBytes: 2 << 20})
			blobtest.RunModel(t, open)
		})
	}
	blobtest.Run(t, func(*testing.T) blob.Store { return cached.New(memblob.New(), nil) })
}

// setup returns a cache over a store that counts.
func setup(opts *cached.Options) (*cached.Store, *blobtest.Faulty) {
	inner := blobtest.NewFaulty(memblob.New())
	return cached.New(inner, opts), inner
}

func mustPut(t *testing.T, s blob.Store, blobs ...blob.Blob) {
	t.Helper()
	if err := s.Put(context.Background(), blobs...); err != nil {
		t.Fatal(err)
	}
}

func wantGet(t *testing.T, s blob.Store, b blob.Blob) {
	t.Helper()
	got, err := s.Get(context.Background(), b.ID)
	if err != nil || !bytes.Equal(got, b.Data) {
		t.Errorf("get: got %d bytes, %v, want %d", len(got), err, len(b.Data))
	}
}

func TestReadsComeFromMemory(t *testing.T) {
	s, inner := setup(nil)
	written, read := blob.New([]byte("written here")), blob.New([]byte("was there before"))
	mustPut(t, inner, read)
	mustPut(t, s, written)
	for range 5 {
		wantGet(t, s, written)
		wantGet(t, s, read)
	}
	if got := inner.Calls(blobtest.OpGet); got != 1 {
		t.Errorf("reads of the inner store: got %d, want 1", got)
	}
	want := cached.Stats{Hits: 9, Misses: 1, Blobs: 2, Bytes: int64(len(written.Data) + len(read.Data))}
	if got := s.Stats(); got != want {
		t.Errorf("stats: got %+v, want %+v", got, want)
	}
}

func TestPutAndHasAlwaysReachTheInnerStore(t *testing.T) {
	s, inner := setup(nil)
	b := blob.New([]byte("content"))
	for range 3 {
		mustPut(t, s, b)
		if _, err := s.Has(t.Context(), b.ID); err != nil {
			t.Fatal(err)
		}
	}
	if puts, has := inner.Calls(blobtest.OpPut), inner.Calls(blobtest.OpHas); puts != 3 || has != 3 {
		t.Errorf("calls of the inner store: got %d puts, %d has, want 3 of each", puts, has)
	}
}

func TestBytesAreBounded(t *testing.T) {
	const limit = 20_000
	s, inner := setup(&cached.Options{MaxBytes: limit})
	var blobs []blob.Blob
	for i := range 100 {
		blobs = append(blobs, blob.New(bytes.Repeat([]byte{byte(i)}, 1000)))
	}
	mustPut(t, s, blobs...)
	stats := s.Stats()
	if stats.Bytes > limit || stats.Blobs < 10 || stats.Evicted != uint64(100-stats.Blobs) {
		t.Errorf("stats after 100,000 bytes: %+v", stats)
	}
	wantGet(t, s, blobs[99])
	if got := inner.Calls(blobtest.OpGet); got != 0 {
		t.Errorf("the last blob was read %d times from the inner store, want 0", got)
	}
	wantGet(t, s, blobs[0])
	if got := inner.Calls(blobtest.OpGet); got != 1 {
		t.Errorf("the first blob was read %d times from the inner store, want 1", got)
	}
}

func TestTheBlobUsedLastStays(t *testing.T) {
	s, inner := setup(&cached.Options{MaxBytes: 12_000})
	favourite := blob.New(bytes.Repeat([]byte("f"), 1000))
	mustPut(t, s, favourite)
	for i := range 50 {
		mustPut(t, s, blob.New(bytes.Repeat([]byte{byte(i)}, 1000)))
		wantGet(t, s, favourite)
	}
	if got := inner.Calls(blobtest.OpGet); got != 0 {
		t.Errorf("a blob in constant use was read %d times from the inner store, want 0", got)
	}
}

func TestLargeBlobsPassBy(t *testing.T) {
	s, inner := setup(&cached.Options{MaxBytes: 8000})
	large := blob.New(make([]byte, 1001))
	mustPut(t, s, large)
	wantGet(t, s, large)
	wantGet(t, s, large)
	if got := inner.Calls(blobtest.OpGet); got != 2 {
		t.Errorf("reads of the inner store: got %d, want 2", got)
	}
}

func TestBulkPassesBy(t *testing.T) {
	s, inner := setup(nil)
	favourite := blob.New([]byte("in constant use"))
	mustPut(t, s, favourite)
	var all []blob.Blob
	for i := range 400 {
		all = append(all, blob.New(fmt.Appendf(nil, "%4000d", i)))
	}
	small, edited := blob.New(make([]byte, 2000)), all[7]
	all[7].Like, all[8] = favourite.ID, small
	mustPut(t, s, all...)
	for _, b := range []blob.Blob{favourite, small, edited} {
		wantGet(t, s, b)
	}
	if got := inner.Calls(blobtest.OpGet); got != 0 {
		t.Errorf("reads of what was there, is small or was edited: got %d, want 0", got)
	}
	for range 2 {
		wantGet(t, s, all[9])
	}
	if got := inner.Calls(blobtest.OpGet); got != 1 {
		t.Errorf("reads of one of many new contents: got %d, want 1", got)
	}
}

func TestPeek(t *testing.T) {
	s, inner := setup(nil)
	b, other := blob.New([]byte("here")), blob.New([]byte("not here"))
	mustPut(t, s, b)
	if got := s.Peek(b.ID); string(got) != "here" {
		t.Errorf("peek at what is in memory: %q", got)
	}
	if got := s.Peek(other.ID); got != nil {
		t.Errorf("peek at what is not: %q", got)
	}
	if got := inner.Calls(blobtest.OpGet); got != 0 {
		t.Errorf("peeking read the inner store %d times", got)
	}
}

func TestDamagedReadDoesNotStay(t *testing.T) {
	s, inner := setup(&cached.Options{Verify: func(id blob.ID, data []byte) error {
		if blob.Sum(data) != id {
			return blob.ErrCorrupt
		}
		return nil
	}})
	b := blob.New([]byte("content"))
	mustPut(t, inner, b)
	inner.On(func(blobtest.Call) *blobtest.Fault { return &blobtest.Fault{Corrupt: true} })
	if got, err := s.Get(t.Context(), b.ID); err != nil || bytes.Equal(got, b.Data) {
		t.Fatalf("get: got %q, %v, want the damaged bytes", got, err)
	}
	inner.Heal()
	wantGet(t, s, b)
	wantGet(t, s, b)
	if got := inner.Calls(blobtest.OpGet); got != 2 {
		t.Errorf("reads of the inner store: got %d, want 2", got)
	}
}

func TestFailedPutEvicts(t *testing.T) {
	s, inner := setup(nil)
	b := blob.New([]byte("content"))
	mustPut(t, s, b)
	inner.FailNext(blobtest.OpPut, 1, nil)
	if err := s.Put(t.Context(), b); !errors.Is(err, blobtest.ErrInjected) {
		t.Fatalf("put: got %v, want ErrInjected", err)
	}
	wantGet(t, s, b)
	if got := inner.Calls(blobtest.OpGet); got != 1 {
		t.Errorf("reads of the inner store after a failed put: got %d, want 1", got)
	}
}

func TestFailedFlushEmptiesTheCache(t *testing.T) {
	s, inner := setup(nil)
	b := blob.New([]byte("content"))
	mustPut(t, s, b)
	first, second := errors.New("disk one"), errors.New("disk two")
	inner.FailNext(blobtest.OpFlush, 1, errors.Join(first, second))
	if err := s.Flush(t.Context()); !errors.Is(err, first) || !errors.Is(err, second) {
		t.Fatalf("flush: got %v, want both errors", err)
	}
	wantGet(t, s, b)
	if got := inner.Calls(blobtest.OpGet); got != 1 {
		t.Errorf("reads of the inner store after a failed flush: got %d, want 1", got)
	}
}

func TestReadersShareOneRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, inner := setup(nil)
		b := blob.New([]byte("wanted by all"))
		mustPut(t, inner, b)
		inner.On(func(blobtest.Call) *blobtest.Fault { return &blobtest.Fault{Delay: time.Second} })
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() { wantGet(t, s, b) })
		}
		wg.Wait()
		if got := inner.Calls(blobtest.OpGet); got != 1 {
			t.Errorf("reads of the inner store: got %d, want 1", got)
		}
		if got := s.Stats(); got.Misses != 1 || got.Shared != 19 {
			t.Errorf("stats: got %+v, want 1 miss and 19 shared", got)
		}
	})
}

func TestReaderThatGivesUpLeavesTheOthersTheirAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, inner := setup(nil)
		b := blob.New([]byte("wanted by two"))
		mustPut(t, inner, b)
		inner.On(func(blobtest.Call) *blobtest.Fault { return &blobtest.Fault{Delay: time.Minute} })
		impatient, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() { // takes off
			if _, err := s.Get(impatient, b.ID); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("impatient reader: got %v, want its deadline", err)
			}
		})
		synctest.Wait()
		wg.Go(func() { wantGet(t, s, b) })
		wg.Wait()
		if got := inner.Calls(blobtest.OpGet); got != 1 {
			t.Errorf("reads of the inner store: got %d, want 1", got)
		}
	})
}

func TestReadThatNobodyWaitsForEndsAndIsNotJoined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, inner := setup(nil)
		b := blob.New([]byte("content"))
		mustPut(t, inner, b)
		inner.On(func(c blobtest.Call) *blobtest.Fault {
			if c.NthOp == 1 {
				return &blobtest.Fault{Delay: time.Hour}
			}
			return nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begin := time.Now()
		if _, err := s.Get(ctx, b.ID); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("get: got %v, want the deadline", err)
		}
		wantGet(t, s, b)
		if took := time.Since(begin); took != time.Second {
			t.Errorf("second read took until %s, want no wait for the first", took)
		}
	})
}

func TestAbsenceIsRememberedForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, inner := setup(&cached.Options{MaxAbsent: 2, AbsentFor: time.Minute})
		b := blob.New([]byte("content"))
		wantAbsent := func() {
			t.Helper()
			if _, err := s.Get(t.Context(), b.ID); !errors.Is(err, blob.ErrNotFound) {
				t.Fatalf("get: got %v, want ErrNotFound", err)
			}
		}
		wantAbsent()
		wantAbsent()
		if got := inner.Calls(blobtest.OpGet); got != 1 {
			t.Errorf("reads of the inner store: got %d, want 1", got)
		}
		mustPut(t, inner, b) // as another process would
		time.Sleep(59 * time.Second)
		wantAbsent()
		time.Sleep(time.Second)
		wantGet(t, s, b)
	})
}

func TestPutEndsAbsence(t *testing.T) {
	s, inner := setup(&cached.Options{MaxAbsent: 2})
	large := blob.New(make([]byte, 32<<20))
	streamed := blob.New([]byte("streamed"))
	for _, id := range []blob.ID{large.ID, streamed.ID} {
		if _, err := s.Get(t.Context(), id); !errors.Is(err, blob.ErrNotFound) {
			t.Fatalf("get: got %v, want ErrNotFound", err)
		}
	}
	mustPut(t, s, large)
	if err := s.PutFrom(t.Context(), streamed.ID, bytes.NewReader(streamed.Data), int64(len(streamed.Data))); err != nil {
		t.Fatal(err)
	}
	wantGet(t, s, large)
	wantGet(t, s, streamed)
	if got := inner.Calls(blobtest.OpPutFrom); got != 1 {
		t.Errorf("streams into the inner store: got %d, want 1", got)
	}
}

// TestAbsenceDoesNotOutliveAPut has the inner store answer "absent", but late,
// and a Put end in between.
func TestAbsenceDoesNotOutliveAPut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := blob.New(make([]byte, 9<<20)) // too large to be cached by the Put itself
		inner := &lateGet{Store: memblob.New()}
		s := cached.New(inner, &cached.Options{MaxAbsent: 2})
		go func() {
			if _, err := s.Get(context.Background(), b.ID); !errors.Is(err, blob.ErrNotFound) {
				t.Errorf("get before the put: got %v, want ErrNotFound", err)
			}
		}()
		synctest.Wait()
		mustPut(t, s, b)
		time.Sleep(2 * time.Second)
		wantGet(t, s, b)
	})
}

// lateGet looks at once and answers a second later.
type lateGet struct{ *memblob.Store }

func (l *lateGet) Get(ctx context.Context, id blob.ID) ([]byte, error) {
	data, err := l.Store.Get(ctx, id)
	time.Sleep(time.Second)
	return data, err
}

func TestResultsAreCounted(t *testing.T) {
	reader := metric.NewManualReader()
	s, _ := setup(&cached.Options{MaxAbsent: 1, MeterProvider: otelmeter.New(metric.NewMeterProvider(metric.WithReader(reader)))})
	b := blob.New([]byte("content"))
	mustPut(t, s, b)
	wantGet(t, s, b)
	wantGet(t, s, b)
	for range 3 {
		if _, err := s.Get(t.Context(), blob.Sum(nil)); err == nil {
			t.Fatal("get of an absent blob: got no error")
		}
	}
	var rm metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &rm); err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	for _, m := range rm.ScopeMetrics[0].Metrics {
		for _, point := range m.Data.(metricdata.Sum[int64]).DataPoints {
			kind, _ := point.Attributes.Value("cache_type")
			got[m.Name+" "+kind.AsString()] = point.Value
		}
	}
	const name = "agent_kv.cached.get_blob.results "
	want := map[string]int64{name + "hit": 2, name + "miss": 1, name + "negative": 2}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("counters: got %v, want %v", got, want)
	}
}

func BenchmarkStore(b *testing.B) {
	blobtest.Bench(b, func(*testing.B) blob.Store { return cached.New(memblob.New(), nil) })
}

func TestLayer(t *testing.T) {
	verify := func(id blob.ID, data []byte) error {
		if blob.Sum(data) != id {
			return blob.ErrCorrupt
		}
		return nil
	}
	blobtest.RunLayer(t, func(_ *testing.T, inner blob.Store) blob.Store {
		return cached.New(inner, &cached.Options{Verify: verify})
	})
}
