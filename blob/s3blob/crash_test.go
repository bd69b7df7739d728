package s3blob_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/s3blob"
	"github.com/stet-dev/stet/internal/realservers"
	"github.com/stet-dev/stet/internal/testenv"
)

// stream gives n pseudo-random bytes and looks at the heap meanwhile.
type stream struct {
	source *rand.ChaCha8
	left   int64
	sum    uint32
	heap   uint64 // the largest that was seen
	seen   int64
}

func newStream(n int64) *stream { return &stream{source: rand.NewChaCha8([32]byte{7}), left: n} }

func (s *stream) Read(p []byte) (int, error) {
	if s.left == 0 {
		return 0, io.EOF
	}
	n, _ := s.source.Read(p[:min(int64(len(p)), s.left)])
	s.left -= int64(n)
	_, _ = s.Write(p[:n])
	return n, nil
}

// Write takes what is read back.
func (s *stream) Write(p []byte) (int, error) {
	s.sum = crc32.Update(s.sum, crc32.IEEETable, p)
	if s.seen += int64(len(p)); s.seen >= 4<<20 {
		s.seen = 0
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		s.heap = max(s.heap, m.HeapAlloc)
	}
	return len(p), nil
}

// TestMemoryStaysFlat sends and reads an object that is much larger than the
// memory that this may take.
func TestMemoryStaysFlat(t *testing.T) {
	size := int64(testenv.Scale(256, 2048)) << 20
	const limit = 96 << 20
	ctx, s := t.Context(), realservers.S3(t)
	opts := options(s)
	opts.PartSize = 0 // as it is by default
	b := open(t, s.URL(s.NewBucket(t)), opts)
	runtime.GC()
	up := newStream(size)
	if err := b.PutObject(ctx, "large", up, size); err != nil {
		t.Fatal(err)
	}
	r, err := b.OpenObject(ctx, "large", 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	down := newStream(0)
	if n, err := io.Copy(down, r); err != nil || n != size {
		t.Fatalf("read back %d bytes, %v, want %d", n, err, size)
	}
	if down.sum != up.sum {
		t.Error("read back other bytes")
	}
	heap := max(up.heap, down.heap)
	t.Logf("%d MiB up and down took a heap of %d MiB", size>>20, heap>>20)
	if heap > limit {
		t.Errorf("the heap grew to %d MiB, want at most %d", heap>>20, limit>>20)
	}
	if err := b.RemoveObjects(ctx, "large"); err != nil {
		t.Error(err)
	}
}

// TestServerKilledDuringPuts kills the server while objects are put: what was
// confirmed is there, whole; what was not is there whole or not at all.
func TestServerKilledDuringPuts(t *testing.T) {
	const workers = 4
	s := realservers.OwnS3(t)
	opts := options(s)
	opts.MaxAttempts = 1 // failures are to be seen
	b := open(t, s.URL(s.NewBucket(t)), opts)
	for round := range testenv.Scale(4, 60) {
		log := &putLog{confirmed: make(map[string]bool), enough: make(chan struct{})}
		var group sync.WaitGroup
		for w := range workers {
			group.Go(func() { log.putUntilFailure(t.Context(), b, round, w) })
		}
		<-log.enough // some were confirmed, and others are on their way
		s.Kill(t)
		group.Wait()
		s.Restart(t)
		log.verify(t, b)
	}
	if _, err := b.AbortStale(t.Context(), -1); err != nil {
		t.Error(err)
	}
	wantUploads(t, b, 0)
}

// putLog is what the workers know about their objects.
type putLog struct {
	mu        sync.Mutex // guards confirmed
	confirmed map[string]bool
	enough    chan struct{}
}

// killedContent is the content of a key: sometimes in parts, mostly small.
func killedContent(round, worker, n int) (string, []byte) {
	size := 1000 * (n + 1)
	if n%8 == 5 {
		size = partSize + n
	}
	return fmt.Sprintf("%d/%d/%04d", round, worker, n), content(uint64(round*1000+worker*100+n), size)
}

func (l *putLog) putUntilFailure(ctx context.Context, b *s3blob.Bucket, round, worker int) {
	for n := range 10_000 {
		key, data := killedContent(round, worker, n)
		err := b.PutObject(ctx, key, bytes.NewReader(data), int64(len(data)))
		l.mu.Lock()
		l.confirmed[key] = err == nil
		if len(l.confirmed) == 25+7*round {
			close(l.enough)
		}
		l.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (l *putLog) verify(t *testing.T, b *s3blob.Bucket) {
	t.Helper()
	failed := 0
	for key, confirmed := range l.confirmed {
		var round, worker, n int
		if _, err := fmt.Sscanf(key, "%d/%d/%d", &round, &worker, &n); err != nil {
			t.Fatal(err)
		}
		_, want := killedContent(round, worker, n)
		got, err := read(t.Context(), b, key, 0, -1)
		switch {
		case err == nil && bytes.Equal(got, want):
		case confirmed:
			t.Errorf("%s was confirmed: got %d bytes, %v, want %d", key, len(got), err, len(want))
		case !errors.Is(err, blob.ErrNotFound):
			t.Errorf("%s was not confirmed: got %d bytes, %v, want %d or none", key, len(got), err, len(want))
		}
		if !confirmed {
			failed++
		}
	}
	if failed == 0 {
		t.Error("no put failed: the server was not killed")
	}
}
