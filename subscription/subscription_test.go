package subscription_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/kv/memkv"
	"github.com/stet-dev/stet/stream"
	"github.com/stet-dev/stet/subscription"
)

// bench is a store in memory with a clock of its own.
type bench struct {
	*subscription.Store
	t       *testing.T
	ctx     context.Context
	streams *stream.Store
	rows    kv.Store
	now     time.Time
}

func newBench(t *testing.T) *bench {
	blobs := memblob.New()
	b := &bench{t: t, ctx: t.Context(), rows: memkv.New(blobs), now: time.Unix(1e9, 0)}
	b.streams = stream.New(blobs, b.rows, nil)
	b.Store = subscription.New(b.streams, b.rows, &subscription.Options{Now: func() time.Time { return b.now }})
	return b
}

func (b *bench) put(id string, c subscription.Config) subscription.Subscription {
	b.t.Helper()
	sub, created, err := b.Put(b.ctx, id, c)
	if err != nil || !created {
		b.t.Fatalf("created %v, %v", created, err)
	}
	return sub
}

// append adds to a stream, which it creates if needed, and wakes.
func (b *bench) append(path string) []subscription.Wake {
	b.t.Helper()
	_, _, err := b.streams.Create(b.ctx, path, stream.Config{ContentType: "text/plain"}, nil)
	if err == nil {
		_, err = b.streams.Append(b.ctx, path, stream.Append{ContentType: "text/plain", Data: []byte("x")})
	}
	if err != nil {
		b.t.Fatal(err)
	}
	wakes, err := b.Grown(b.ctx, path)
	if err != nil {
		b.t.Fatal(err)
	}
	return wakes
}

var hook = subscription.Config{Kind: subscription.Webhook, Pattern: "a/*", URL: "https://example.com/hook", Lease: time.Minute}

func TestPatterns(t *testing.T) {
	for _, c := range []struct {
		pattern, path string
		want          bool
	}{
		{"a/*", "a/b", true}, {"a/*", "a", false}, {"a/*", "a/b/c", false}, {"*", "a", true},
		{"**", "a/b/c", true}, {"a/**", "a", true}, {"a/**", "a/b/c", true}, {"**/c", "a/b/c", true}, {"**/c", "c", true},
		{"a/**/c", "a/c", true}, {"a/**/c", "a/b/b/c", true}, {"a/**/c", "a/b", false}, {"/a/b/", "a/b", true},
		{"**/a/**/b", "x/a/y/a/z/b", true}, {"a*", "ab", false},
	} {
		if got := subscription.Match(c.pattern, c.path); got != c.want {
			t.Errorf("Match(%q, %q) = %v", c.pattern, c.path, got)
		}
	}
	// A pattern of many ** takes no longer than its length times that of the path.
	if subscription.Match(strings.Repeat("**/a/", 60)+"b", strings.Repeat("a/", 200)+"c") {
		t.Error("it matches")
	}
}

func TestSameConfigurationIsConfirmed(t *testing.T) {
	b := newBench(t)
	b.put("s", hook)
	if _, created, err := b.Put(b.ctx, "s", hook); created || err != nil {
		t.Errorf("again: created %v, %v", created, err)
	}
	other := hook
	other.Description = "another"
	if _, _, err := b.Put(b.ctx, "s", other); !errors.Is(err, subscription.ErrExists) {
		t.Errorf("another one: %v", err)
	}
	for _, bad := range []subscription.Config{
		{}, {Kind: subscription.Webhook, Pattern: "a"}, {Kind: subscription.PullWake, Pattern: "a"},
		{Kind: subscription.Webhook, URL: "https://x"}, {Kind: subscription.Webhook, URL: "https://x", Pattern: "a", Lease: time.Millisecond},
		{Kind: subscription.PullWake, Pattern: "a", WakeStream: "wakes\n"}, {Kind: subscription.PullWake, Pattern: "a", WakeStream: strings.Repeat("w", stream.MaxPath+1)},
	} {
		if _, _, err := b.Put(b.ctx, "n", bad); !errors.Is(err, subscription.ErrInvalid) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

// What was there before is not replayed; what comes is, once for each wake.
func TestOneWakeAtATime(t *testing.T) {
	b := newBench(t)
	b.append("a/old")
	b.put("s", hook)
	if wakes := b.append("b/other"); len(wakes) != 0 {
		t.Errorf("a stream outside of the pattern wakes: %+v", wakes)
	}
	wakes := b.append("a/new")
	if len(wakes) != 1 || wakes[0].Generation != 1 || len(wakes[0].Links) != 2 || wakes[0].Links[1].Pending {
		t.Fatalf("%+v", wakes)
	}
	if again := b.append("a/old"); len(again) != 0 {
		t.Errorf("a second wake while one is under way: %+v", again)
	}
	// The answer covers what the wake showed; the append since then wakes again.
	next, err := b.Finished(b.ctx, wakes[0])
	if err != nil || len(next) != 1 || next[0].Generation != 2 {
		t.Fatalf("%+v, %v", next, err)
	}
	if _, err := b.Finished(b.ctx, wakes[0]); !errors.Is(err, subscription.ErrFenced) {
		t.Errorf("the first wake answers again: %v", err)
	}
	if next, err = b.Finished(b.ctx, next[0]); err != nil || len(next) != 0 {
		t.Errorf("nothing is left, yet %+v, %v", next, err)
	}
}

func TestLateAnswersAreFenced(t *testing.T) {
	b := newBench(t)
	b.put("s", hook)
	w := b.append("a/1")[0]
	b.now = b.now.Add(time.Minute) // its lease
	answer := subscription.Answer{Wake: w.Wake, Generation: w.Generation, Done: true}
	if _, _, err := b.Answer(b.ctx, "s", w.Generation, answer); !errors.Is(err, subscription.ErrFenced) {
		t.Errorf("after the lease: %v", err)
	}
	// Any append finds a lease that has ended, whichever process had the timer.
	next := b.append("a/2")
	if len(next) != 1 || next[0].Generation != 2 {
		t.Fatalf("%+v", next)
	}
	if _, _, err := b.Answer(b.ctx, "s", 1, answer); !errors.Is(err, subscription.ErrFenced) {
		t.Errorf("an earlier generation: %v", err)
	}
	answer = subscription.Answer{Wake: next[0].Wake, Generation: 2}
	if more, _, err := b.Answer(b.ctx, "s", 2, answer); more || err != nil { // a heartbeat
		t.Errorf("more %v, %v", more, err)
	}
	b.now = b.now.Add(59 * time.Second)
	for _, bad := range []subscription.Ack{{Path: "b", Offset: next[0].Links[0].Tail}, {Path: "a/1", Offset: "-1"}, {Path: "a/1", Offset: "0000000000000009_0000000000000009"}} {
		answer.Acks = []subscription.Ack{{Path: "a/2", Offset: "0000000000000001_0000000000000001"}, bad}
		if _, _, err := b.Answer(b.ctx, "s", 2, answer); !errors.Is(err, subscription.ErrCursor) {
			t.Errorf("ack %+v: %v", bad, err)
		}
	}
	if sub, _ := b.Get(b.ctx, "s"); sub.Links[1].Acked != "-1" {
		t.Errorf("a refused answer moved a cursor: %+v", sub.Links)
	}
}

func TestFailedDeliveriesAreTriedAgain(t *testing.T) {
	b := newBench(t)
	b.put("s", hook)
	w := b.append("a/1")[0]
	for i, want := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		if err := b.Failed(b.ctx, w, 0.5); err != nil {
			t.Fatal(err)
		}
		due, err := b.DueAt(b.ctx, "s")
		if err != nil || due.Sub(b.now) != want {
			t.Fatalf("failure %d: due in %s, %v; want %s", i, due.Sub(b.now), err, want)
		}
		if wakes, err := b.Due(b.ctx, "s"); err != nil || len(wakes) != 0 {
			t.Errorf("too early: %+v, %v", wakes, err)
		}
		b.now = due
		wakes, err := b.Due(b.ctx, "s")
		if err != nil || len(wakes) != 1 || wakes[0].Wake != w.Wake {
			t.Fatalf("%+v, %v", wakes, err)
		}
	}
	if sub, _ := b.Get(b.ctx, "s"); !sub.Failing {
		t.Error("it does not say that deliveries fail")
	}
}

func TestClaims(t *testing.T) {
	b := newBench(t)
	b.append("wakes")
	b.put("s", subscription.Config{Kind: subscription.PullWake, Streams: []string{"a"}, WakeStream: "wakes", Lease: time.Minute})
	if _, err := b.Claim(b.ctx, "s", "w1"); !errors.Is(err, subscription.ErrIdle) {
		t.Errorf("nothing to do: %v", err)
	}
	b.append("a")
	first, err := b.Claim(b.ctx, "s", "w1")
	if err != nil {
		t.Fatal(err)
	}
	var claimed *subscription.ClaimedError
	if _, err := b.Claim(b.ctx, "s", "w2"); !errors.As(err, &claimed) || claimed.Holder != "w1" {
		t.Errorf("a second worker: %v", err)
	}
	b.now = b.now.Add(time.Minute)
	second, err := b.Claim(b.ctx, "s", "w2")
	if err != nil || second.Generation <= first.Generation {
		t.Errorf("after the lease: %+v, %v", second, err)
	}
	if err := b.Delete(b.ctx, "s"); err != nil {
		t.Fatal(err)
	}
	_, _, err = b.Answer(b.ctx, "s", second.Generation, subscription.Answer{Wake: second.Wake, Generation: second.Generation, Done: true})
	if !errors.Is(err, subscription.ErrNotFound) {
		t.Errorf("an answer for a deleted subscription: %v", err)
	}
	batch, err := b.streams.Read(b.ctx, "wakes", stream.Offset{}, nil)
	if err != nil || !strings.Contains(string(stream.Body("text/plain", batch.Appends)), `"subscription_id":"s"`) {
		t.Errorf("%+v, %v", batch, err)
	}
}

func TestRowsThatReadersRefuse(t *testing.T) {
	b := newBench(t)
	b.put("s", hook)
	for row, err := range b.rows.Scan(b.ctx, kv.Range{}, kv.ScanOptions{}) {
		if err != nil || subscription.CheckRow(row) != nil {
			t.Fatal(err, subscription.CheckRow(row))
		}
		if err := subscription.CheckRow(kv.Row{Key: row.Key + "x", Value: row.Value}); !errors.Is(err, kv.ErrCorrupt) {
			t.Errorf("under another key: %v", err)
		}
		if err := subscription.CheckRow(kv.Row{Key: row.Key, Value: append([]byte{8, 9}, row.Value[2:]...)}); !errors.Is(err, kv.ErrNewerFormat) {
			t.Errorf("of a newer format: %v", err)
		}
	}
}
