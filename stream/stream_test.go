package stream_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/kv/memkv"
	"github.com/stet-dev/stet/stream"
)

const text = "text/plain"

// bench is a store in memory with a clock of its own.
type bench struct {
	*stream.Store
	blobs blob.Store
	rows  kv.Store
	now   time.Time
}

func newBench() *bench {
	blobs := memblob.New()
	b := &bench{blobs: blobs, rows: memkv.New(blobs), now: time.Unix(1e9, 0)}
	b.Store = stream.New(b.blobs, b.rows, &stream.Options{Now: func() time.Time { return b.now }})
	return b
}

func (b *bench) create(t *testing.T, path string, c stream.Config, data string) stream.Info {
	t.Helper()
	if c.ContentType == "" && c.Fork == nil {
		c.ContentType = text
	}
	info, created, err := b.Create(t.Context(), path, c, []byte(data))
	if err != nil || !created {
		t.Fatalf("create %s: created %v, %v", path, created, err)
	}
	return info
}

func (b *bench) append(t *testing.T, path, data string) stream.Offset {
	t.Helper()
	done, err := b.Append(t.Context(), path, stream.Append{ContentType: text, Data: []byte(data)})
	if err != nil {
		t.Fatal(err)
	}
	return done.Tail
}

// whole reads a stream from its beginning, a few bytes at a time.
func whole(t *testing.T, s *stream.Store, path string) string {
	t.Helper()
	var all strings.Builder
	var at stream.Offset
	for {
		batch, err := s.Read(t.Context(), path, at, &stream.ReadOptions{MaxBytes: 3})
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range batch.Appends {
			all.Write(a.Data)
		}
		if at = batch.Next; batch.UpToDate {
			return all.String()
		}
	}
}

func rowCount(t *testing.T, rows kv.Store) (n int) {
	t.Helper()
	for _, err := range rows.Scan(t.Context(), kv.Range{}, kv.ScanOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

func TestOffsetsSortLikeTheirPlaces(t *testing.T) {
	b := newBench()
	b.create(t, "s", stream.Config{}, "")
	last := stream.Offset{}.String()
	for i := range 30 {
		at := b.append(t, "s", strings.Repeat("x", i+1))
		if at.String() <= last {
			t.Fatalf("%s comes after %s", at, last)
		}
		if parsed, err := stream.ParseOffset(at.String()); err != nil || parsed != at {
			t.Fatalf("ParseOffset(%s) = %v, %v", at, parsed, err)
		}
		last = at.String()
	}
	for _, bad := range []string{"", "-1", "now", "1_1", "0000000000000001-0000000000000001", "+000000000000001_0000000000000001", last + "0"} {
		if _, err := stream.ParseOffset(bad); !errors.Is(err, stream.ErrInvalidOffset) {
			t.Errorf("ParseOffset(%q) = %v", bad, err)
		}
	}
}

func TestPlacesThatTheStreamDoesNotHave(t *testing.T) {
	b := newBench()
	b.create(t, "s", stream.Config{}, "one")
	end := b.append(t, "s", "two")
	for _, bad := range []stream.Offset{{Seq: 0, Bytes: 1}, {Seq: 1, Bytes: 2}, {Seq: 2, Bytes: 5}, {Seq: 3, Bytes: 6}} {
		if _, err := b.Read(t.Context(), "s", bad, nil); !errors.Is(err, stream.ErrInvalidOffset) {
			t.Errorf("reading after %s: %v", bad, err)
		}
		_, _, err := b.Create(t.Context(), "f", stream.Config{Fork: &stream.Fork{Source: "s", At: &bad}}, nil)
		if !errors.Is(err, stream.ErrInvalidOffset) {
			t.Errorf("a fork at %s: %v", bad, err)
		}
	}
	if batch, err := b.Read(t.Context(), "s", end, nil); err != nil || !batch.UpToDate || len(batch.Appends) > 0 {
		t.Errorf("at the end: %+v, %v", batch, err)
	}
}

func TestLargeAppendsAreBlobs(t *testing.T) {
	b := newBench()
	b.create(t, "s", stream.Config{}, "")
	large := bytes.Repeat([]byte("0123456789abcdef"), 8<<10)
	b.append(t, "s", string(large))
	b.append(t, "s", "small")
	if got := whole(t, b.Store, "s"); got != string(large)+"small" {
		t.Fatalf("read %d bytes", len(got))
	}
	n := 0
	for root, err := range b.Roots(t.Context()) {
		if err != nil || root.ID != blob.Sum(large) {
			t.Fatal(root, err)
		}
		n++
	}
	if n != 1 {
		t.Errorf("%d roots, want the large append", n)
	}
	// A fork that takes a part of it needs its own copy of that part.
	b.create(t, "f", stream.Config{Fork: &stream.Fork{Source: "s", At: &stream.Offset{}, Sub: 40 << 10}}, "")
	if got := whole(t, b.Store, "f"); got != string(large[:40<<10]) {
		t.Errorf("the fork has %d bytes", len(got))
	}
	if _, err := b.Append(t.Context(), "s", stream.Append{ContentType: text, Data: make([]byte, stream.MaxAppend+1)}); !errors.Is(err, stream.ErrTooLarge) {
		t.Errorf("a larger append than allowed: %v", err)
	}
}

// A collector removes the blob of an append before its commit: it is put again.
func TestBlobThatWasCollectedBeforeItsCommit(t *testing.T) {
	blobs := memblob.New()
	rows := &forgetful{Store: memkv.New(blobs)}
	s := stream.New(blobs, rows, nil)
	if _, _, err := s.Create(t.Context(), "s", stream.Config{ContentType: text}, nil); err != nil {
		t.Fatal(err)
	}
	rows.missing = 2
	large := bytes.Repeat([]byte("x"), 100<<10)
	if _, err := s.Append(t.Context(), "s", stream.Append{ContentType: text, Data: large}); err != nil {
		t.Fatal(err)
	}
	if got := whole(t, s, "s"); got != string(large) {
		t.Errorf("read %d bytes", len(got))
	}
}

// forgetful says of some commits that a blob is missing.
type forgetful struct {
	kv.Store
	missing int
}

func (f *forgetful) Commit(ctx context.Context, b *kv.Batch) error {
	if len(b.Refs) > 0 && f.missing > 0 {
		f.missing--
		return &kv.MissingBlobsError{IDs: b.Refs}
	}
	return f.Store.Commit(ctx, b)
}

func TestSlidingExpiry(t *testing.T) {
	b := newBench()
	ttl := uint64(60)
	b.create(t, "s", stream.Config{Expiry: stream.Expiry{TTL: &ttl}}, "one")
	for range 3 { // each of these puts it off
		b.now = b.now.Add(50 * time.Second)
		if _, err := b.Read(t.Context(), "s", stream.Offset{}, nil); err != nil {
			t.Fatal(err)
		}
		b.now = b.now.Add(50 * time.Second)
		b.append(t, "s", "x")
	}
	b.now = b.now.Add(50 * time.Second)
	if _, err := b.Info(t.Context(), "s"); err != nil { // this does not
		t.Fatal(err)
	}
	b.now = b.now.Add(10 * time.Second)
	if _, err := b.Info(t.Context(), "s"); !errors.Is(err, stream.ErrNotFound) {
		t.Errorf("after its time: %v", err)
	}
	if _, err := b.Append(t.Context(), "s", stream.Append{ContentType: text, Data: []byte("x")}); !errors.Is(err, stream.ErrNotFound) {
		t.Errorf("append after its time: %v", err)
	}
	if n, err := b.Expire(t.Context()); n != 1 || err != nil {
		t.Errorf("Expire() = %d, %v", n, err)
	}
	if n := rowCount(t, b.rows); n != 0 {
		t.Errorf("%d rows are left", n)
	}
}

func TestExpiredStreamCanBeCreatedAgain(t *testing.T) {
	b := newBench()
	at := b.now.Add(time.Minute).UTC().Format(time.RFC3339)
	first := b.create(t, "s", stream.Config{Expiry: stream.Expiry{At: at}}, "old")
	b.now = b.now.Add(time.Hour)
	if second := b.create(t, "s", stream.Config{}, "new"); second.ID == first.ID {
		t.Error("both have one id")
	}
	if got := whole(t, b.Store, "s"); got != "new" {
		t.Errorf("it has %q", got)
	}
}

func TestDeletedSourceStaysForItsForks(t *testing.T) {
	b := newBench()
	b.create(t, "a", stream.Config{}, "one")
	b.create(t, "b", stream.Config{Fork: &stream.Fork{Source: "a"}}, "two")
	b.create(t, "c", stream.Config{Fork: &stream.Fork{Source: "b"}}, "three")
	for _, path := range []string{"a", "b"} {
		if err := b.Delete(t.Context(), path); err != nil {
			t.Fatal(err)
		}
		if err := b.Delete(t.Context(), path); !errors.Is(err, stream.ErrGone) {
			t.Errorf("delete %s again: %v", path, err)
		}
		if _, _, err := b.Create(t.Context(), path, stream.Config{}, nil); !errors.Is(err, stream.ErrGone) {
			t.Errorf("create %s again: %v", path, err)
		}
	}
	if got := whole(t, b.Store, "c"); got != "onetwothree" {
		t.Errorf("the fork has %q", got)
	}
	if err := b.Delete(t.Context(), "c"); err != nil {
		t.Fatal(err)
	}
	if n := rowCount(t, b.rows); n != 0 {
		t.Errorf("%d rows are left", n)
	}
}

// Many writers of one process, and a second process: every append is there once, and
// every writer's are in its order.
func TestManyWriters(t *testing.T) {
	b := newBench()
	b.create(t, "s", stream.Config{}, "")
	other := stream.New(b.blobs, b.rows, nil)
	const writers, each = 12, 20
	var wg sync.WaitGroup
	for w := range writers {
		s := b.Store
		if w%3 == 0 {
			s = other
		}
		wg.Go(func() {
			for i := range each {
				a := stream.Append{
					ContentType: text, Data: fmt.Appendf(nil, "%d.%d\n", w, i),
					Producer: &stream.Producer{ID: fmt.Sprint(w), Seq: uint64(i)},
				}
				for range 2 { // the second one is a repetition
					if _, err := s.Append(context.Background(), "s", a); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	wg.Wait()
	next := make([]int, writers)
	lines := strings.Fields(whole(t, b.Store, "s"))
	for _, line := range lines {
		var w, i int
		if _, err := fmt.Sscanf(line, "%d.%d", &w, &i); err != nil || next[w] != i {
			t.Fatalf("writer %d: %d came in the place of %d, %v", w, i, next[w], err)
		}
		next[w]++
	}
	if len(lines) != writers*each {
		t.Errorf("%d appends, want %d", len(lines), writers*each)
	}
}

// Appends that wait while another one commits are all there after it, and a caller that leaves
// does not disturb them.
func TestWaitingAppends(t *testing.T) {
	blobs := memblob.New()
	rows := &slow{Store: memkv.New(blobs), hold: make(chan struct{}), held: make(chan struct{}, 1)}
	s := stream.New(blobs, rows, nil)
	if _, _, err := s.Create(t.Context(), "s", stream.Config{ContentType: text}, nil); err != nil {
		t.Fatal(err)
	}
	rows.on = true
	var wg sync.WaitGroup
	write := func() {
		if _, err := s.Append(context.Background(), "s", stream.Append{ContentType: text, Data: []byte("x")}); err != nil {
			t.Error(err)
		}
	}
	wg.Go(write)
	<-rows.held // the first one commits
	ctx, cancel := context.WithCancel(t.Context())
	for range 20 {
		wg.Go(write)
	}
	wg.Go(func() { // this caller leaves the queue
		cancel()
		if _, err := s.Append(ctx, "s", stream.Append{ContentType: text, Data: []byte("y")}); err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	<-ctx.Done()
	close(rows.hold)
	wg.Wait()
	if got := strings.Count(whole(t, s, "s"), "x"); got != 21 {
		t.Errorf("%d appends, want 21", got)
	}
}

// slow holds commits back.
type slow struct {
	kv.Store
	on   bool
	hold chan struct{}
	held chan struct{}
}

func (s *slow) Commit(ctx context.Context, b *kv.Batch) error {
	if s.on {
		select {
		case s.held <- struct{}{}:
		default:
		}
		<-s.hold
	}
	return s.Store.Commit(ctx, b)
}

func TestFollowerEndsWithItsStream(t *testing.T) {
	b := newBench()
	b.create(t, "s", stream.Config{}, "one")
	f := b.Follow(t.Context(), "s", stream.Offset{}, nil)
	if batch, err := f.Next(t.Context()); err != nil || len(batch.Appends) != 1 {
		t.Fatal(batch, err)
	}
	if err := b.Delete(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	b.create(t, "s", stream.Config{}, "two")
	if _, err := f.Next(t.Context()); !errors.Is(err, stream.ErrNotFound) {
		t.Errorf("the follower of a stream that was created again: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.Follow(t.Context(), "s", stream.Offset{Seq: 1, Bytes: 3}, nil).Next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled follower: %v", err)
	}
}

func TestRowsThatReadersRefuse(t *testing.T) {
	b := newBench()
	b.create(t, "s", stream.Config{}, "one")
	for row, err := range b.rows.Scan(t.Context(), kv.Range{}, kv.ScanOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		if err := stream.CheckRow(row); err != nil {
			t.Errorf("row %q: %v", row.Key, err)
		}
		if err := stream.CheckRow(kv.Row{Key: row.Key + "x", Value: row.Value}); err == nil {
			t.Errorf("row %q is accepted under another key", row.Key)
		}
		if err := stream.CheckRow(kv.Row{Key: row.Key, Value: append([]byte{0x08, 9}, row.Value[2:]...)}); !errors.Is(err, stream.ErrNewerFormat) {
			t.Errorf("row %q of a newer format: %v", row.Key, err)
		}
		if err := stream.CheckRow(kv.Row{Key: row.Key}); !errors.Is(err, kv.ErrCorrupt) {
			t.Errorf("row %q without a value: %v", row.Key, err)
		}
	}
}

var (
	everything = kv.Range{}
	noOptions  = kv.ScanOptions{}
)
