package memkv_test

import (
	"context"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/kv/kvtest"
	"github.com/stet-dev/stet/kv/memkv"
)

func open(*testing.T) kv.Store { return memkv.New(nil) }

func TestConformance(t *testing.T) { kvtest.Run(t, open) }

func TestLinearizable(t *testing.T) { kvtest.RunLinearizable(t, open) }

func TestScanIsASnapshot(t *testing.T) {
	ctx := context.Background()
	s := memkv.New(nil)
	set := func(keys ...string) {
		t.Helper()
		b := &kv.Batch{}
		for _, k := range keys {
			b.Set = append(b.Set, kv.Set{Key: k, Value: []byte("new")})
		}
		if err := s.Commit(ctx, b); err != nil {
			t.Fatal(err)
		}
	}
	set("a", "b", "c")
	var seen []string
	for row, err := range s.Scan(ctx, kv.Range{}, kv.ScanOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		set("b2", "d")
		seen = append(seen, row.Key)
	}
	if len(seen) != 3 {
		t.Errorf("scan gave %q, want the three rows of its start", seen)
	}
}

func TestWatchIsQuietOutsideItsRangeAndClosesAtItsEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	s := memkv.New(nil)
	wake := s.Watch(ctx, kv.Range{Start: "m", End: "n"})
	for _, key := range []string{"l", "n", "z"} {
		if err := s.Commit(ctx, &kv.Batch{Set: []kv.Set{{Key: key}}, Delete: []string{"m"}}); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-wake:
		t.Error("a watcher woke for rows outside its range")
	default: // hints are sent before Commit returns
	}
	cancel()
	if _, open := <-wake; open {
		t.Error("got a hint, want the channel closed")
	}
}

func TestReferences(t *testing.T) {
	kvtest.RunRefs(t, func(*testing.T) (kv.Store, blob.Store) {
		blobs := memblob.New()
		return memkv.New(blobs), blobs
	})
}
