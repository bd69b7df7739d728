package s3blob_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/s3blob"
	"github.com/stet-dev/stet/internal/realservers"
	"github.com/stet-dev/stet/internal/testenv"
)

// content returns n bytes that are the same for the same seed.
func content(seed uint64, n int) []byte {
	contents.Lock()
	defer contents.Unlock()
	key := [2]uint64{seed, uint64(n)}
	if n >= partSize && contents.made[key] != nil {
		return contents.made[key]
	}
	data := newContent(seed, n)
	if n >= partSize && seed < 2 {
		contents.made[key] = data
	}
	return data
}

// contents are the large ones that many tests use; to make them takes long under
// the race detector.
var contents = struct {
	sync.Mutex
	made map[[2]uint64][]byte
}{made: make(map[[2]uint64][]byte)}

func newContent(seed uint64, n int) []byte {
	data := make([]byte, n)
	source := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
	_, _ = source.Read(data) // never fails, by its contract
	return data
}

// sizes are one of an object in one piece and one in three parts.
var sizes = []int{100_000, 2*partSize + 1000}

func read(ctx context.Context, b *s3blob.Bucket, key string, offset, length int64) ([]byte, error) {
	r, err := b.OpenObject(ctx, key, offset, length)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(r)
	return data, errors.Join(err, r.Close())
}

// TestPutThroughFaults puts objects over a way that fails for a while, and for
// good.
func TestPutThroughFaults(t *testing.T) {
	for _, c := range []struct {
		name    string
		matches func(*http.Request) bool
		fault   fault
		want    error // if it goes on for good
		hits    []int // sizes that meet it; nil means all
	}{
		{"errors of the server", anyRequest, refuse(500, "InternalError"), s3blob.ErrUnavailable, nil},
		{"slow down", anyRequest, refuse(503, "SlowDown"), s3blob.ErrUnavailable, nil},
		{"too many requests", uploads, refuse(429, "TooManyRequests"), s3blob.ErrUnavailable, nil},
		{"bad gateway without words", uploads, refuse(502, ""), s3blob.ErrUnavailable, nil},
		{"body cut", uploads, cutRequest, s3blob.ErrUnavailable, nil},
		{"body changed", uploads, flipRequest, s3blob.ErrUnavailable, nil},
		{"no answer", uploads, loseAnswer, s3blob.ErrUnavailable, nil},
		{"last part lost", lastPart, cutRequest, s3blob.ErrUnavailable, sizes[1:]},
		{"answer cut", uploads, cutAnswer(0), nil, []int{}}, // answers to uploads have no body
		{"completion lost", completion, loseAnswer, s3blob.ErrUnavailable, sizes[1:]},
		{"completion refused", completion, refuse(500, "InternalError"), s3blob.ErrUnavailable, sizes[1:]},
		{"size of the object lost", downloads, refuse(500, "InternalError"), s3blob.ErrUnavailable, sizes[1:]},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx := t.Context()
			b, p := throughProxy(t)
			for i, size := range sizes {
				if testenv.Quick() && size > partSize && c.hits == nil && c.name != "no answer" {
					continue // takes minutes over all cases, and shares nothing more
				}
				hit := c.hits == nil || slices.Contains(c.hits, size)
				data, key := content(uint64(i), size), fmt.Sprintf("passing/%d", size)
				p.set(c.matches, 2, c.fault)
				if err := b.PutObject(ctx, key, bytes.NewReader(data), int64(size)); err != nil {
					t.Errorf("put of %d bytes with two faults: %v", size, err)
				}
				if applied, _ := p.count(); hit && applied != 2 {
					t.Errorf("put of %d bytes met %d faults, want 2", size, applied)
				}
				p.clear()
				if got, err := read(ctx, b, key, 0, -1); err != nil || !bytes.Equal(got, data) {
					t.Errorf("put of %d bytes with two faults: read back %d bytes, %v", size, len(got), err)
				}
				if !hit {
					continue
				}
				key = fmt.Sprintf("lasting/%d", size)
				p.set(c.matches, always, c.fault)
				if err := b.PutObject(ctx, key, bytes.NewReader(data), int64(size)); !errors.Is(err, c.want) {
					t.Errorf("put of %d bytes with faults for good: got %v, want %v", size, err, c.want)
				}
				p.clear()
				// An answer that was lost may have left the object, but never another one.
				if got, err := read(ctx, b, key, 0, -1); !errors.Is(err, blob.ErrNotFound) && !bytes.Equal(got, data) {
					t.Errorf("put of %d bytes with faults for good left %d bytes, %v", size, len(got), err)
				}
			}
			if c.name != "errors of the server" && c.name != "slow down" { // those hit the clean-up too
				wantUploads(t, b, 0)
			}
		})
	}
}

func TestNoRetryOfWhatDoesNotPass(t *testing.T) {
	ctx := t.Context()
	b, p := throughProxy(t)
	for _, c := range []struct {
		status int
		code   string
		want   error
	}{
		{403, "AccessDenied", s3blob.ErrDenied}, {403, "", s3blob.ErrDenied}, {404, "NoSuchKey", blob.ErrNotFound},
		{404, "NoSuchBucket", s3blob.ErrNoBucket}, {507, "", nil},
	} {
		p.set(anyRequest, always, refuse(c.status, c.code))
		_, before := p.count()
		_, err := b.OpenObject(ctx, "a", 0, -1)
		_, after := p.count()
		if c.want == nil {
			c.want, before = blob.ErrFull, after-1 // whether this one is tried again does not matter
		}
		if !errors.Is(err, c.want) || after-before != 1 {
			t.Errorf("%d %s: got %v after %d requests, want %v after one", c.status, c.code, err, after-before, c.want)
		}
	}
	// A 404 from a proxy on the way does not mean that the object is absent.
	p.set(anyRequest, always, refuse(404, ""))
	if _, err := b.OpenObject(ctx, "a", 0, -1); err == nil || errors.Is(err, blob.ErrNotFound) {
		t.Errorf("404 without a code: got %v, want an error other than %v", err, blob.ErrNotFound)
	}
}

// TestReadThroughFaults reads over connections that break.
func TestReadThroughFaults(t *testing.T) {
	ctx := t.Context()
	b, p := throughProxy(t)
	for i, size := range sizes {
		data, key := content(uint64(i), size), fmt.Sprint(size)
		put(t, b, key, string(data))
		for name, f := range map[string]fault{
			"cut at once": cutAnswer(0), "cut later": cutAnswer(70_000), "cut at the end": cutAnswer(29_999),
			"slow down": refuse(503, "SlowDown"), "no answer": loseAnswer,
		} {
			for _, r := range [][2]int64{{0, -1}, {1, -1}, {10_000, 80_000}} {
				want := data[r[0]:]
				if r[1] >= 0 {
					want = want[:r[1]]
				}
				p.set(downloads, 3, f)
				if got, err := read(ctx, b, key, r[0], r[1]); err != nil || !bytes.Equal(got, want) {
					t.Errorf("%s, %v of %d bytes: got %d bytes, %v, want %d", name, r, size, len(got), err, len(want))
				}
			}
		}
	}
	// A connection that breaks without getting anywhere is not tried without end, and
	// never looks like the end.
	for _, n := range []int{0, 10} {
		p.set(downloads, always, cutAnswer(n))
		got, err := read(ctx, b, fmt.Sprint(sizes[0]), 0, -1)
		if !errors.Is(err, s3blob.ErrUnavailable) || len(got) > 100 {
			t.Errorf("broken connections for good: got %d bytes, %v, want %v", len(got), err, s3blob.ErrUnavailable)
		}
		if applied, _ := p.count(); applied > 20 {
			t.Errorf("broken connections for good: %d requests", applied)
		}
	}
}

func TestDamagedDownload(t *testing.T) {
	ctx := t.Context()
	b, p := throughProxy(t)
	for i, size := range sizes {
		data, key := content(uint64(i), size), fmt.Sprint(size)
		put(t, b, key, string(data))
		p.set(downloads, always, flipAnswer)
		got, err := read(ctx, b, key, 0, -1)
		if !errors.Is(err, blob.ErrCorrupt) || len(got) >= size {
			t.Errorf("%d bytes with a changed bit: got %d, %v, want fewer and %v", size, len(got), err, blob.ErrCorrupt)
		}
		// Also for whom the number of bytes is enough.
		r, err := b.OpenObject(ctx, key, 0, -1)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(r, make([]byte, size)); !errors.Is(err, blob.ErrCorrupt) {
			t.Errorf("%d bytes with a changed bit, read by number: got %v, want %v", size, err, blob.ErrCorrupt)
		}
		r.Close()
		// A service that keeps no checksum gives the bytes; the caller, which knows their hash,
		// finds the damage.
		p.set(downloads, always, withoutHeaders("x-amz-meta", "x-amz-checksum"))
		if got, err := read(ctx, b, key, 0, -1); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%d bytes without a checksum: got %d, %v", size, len(got), err)
		}
		p.clear()
	}
}

// TestObjectReplacedWhileRead has another object under the key when a broken
// reading is continued.
func TestObjectReplacedWhileRead(t *testing.T) {
	ctx := t.Context()
	b, p := throughProxy(t)
	put(t, b, "a", strings.Repeat("a", 100_000))
	p.set(downloads, 1, cutAnswer(50_000))
	r, err := b.OpenObject(ctx, "a", 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	put(t, b, "a", strings.Repeat("b", 100_000))
	got, err := io.ReadAll(r)
	if !errors.Is(err, blob.ErrCorrupt) || bytes.ContainsRune(got, 'b') {
		t.Errorf("got %d bytes, %v, want the first object's and %v", len(got), err, blob.ErrCorrupt)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if _, err := r.Read(make([]byte, 1)); err == nil {
		t.Error("read after Close: no error")
	}
}

func TestStalledPeer(t *testing.T) {
	s := realservers.S3(t)
	p := newProxy(t, s)
	opts := options(s)
	opts.IdleTimeout, opts.MaxAttempts = 50*time.Millisecond, 2
	b := open(t, realservers.S3URL(p.url, s.NewBucket(t)), opts)
	p.set(anyRequest, always, stall)
	if err := b.PutObject(t.Context(), "a", strings.NewReader("a"), 1); !errors.Is(err, s3blob.ErrUnavailable) {
		t.Errorf("put: got %v, want %v", err, s3blob.ErrUnavailable)
	}
	if _, err := b.OpenObject(t.Context(), "a", 0, -1); !errors.Is(err, s3blob.ErrUnavailable) {
		t.Errorf("open: got %v, want %v", err, s3blob.ErrUnavailable)
	}
}

func TestGivenUp(t *testing.T) {
	s := realservers.S3(t)
	p := newProxy(t, s)
	b := open(t, realservers.S3URL(p.url, s.NewBucket(t)), options(s))
	ctx, cancel := context.WithCancel(t.Context())
	// The caller goes away while the last part is on its way, and no other: the
	// server may keep a part that arrives after the upload is abandoned.
	p.set(lastPart, always, func(w http.ResponseWriter, r *http.Request, up http.Handler) {
		p.awaitAlone()
		cancel()
		stall(w, r, up)
	})
	data := content(1, sizes[1])
	if err := b.PutObject(ctx, "a", bytes.NewReader(data), int64(len(data))); !errors.Is(err, context.Canceled) {
		t.Errorf("put: got %v, want %v", err, context.Canceled)
	}
	wantUploads(t, b, 0)
	if _, err := b.OpenObject(t.Context(), "a", 0, -1); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("open: got %v, want %v", err, blob.ErrNotFound)
	}
}
