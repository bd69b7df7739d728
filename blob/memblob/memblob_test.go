package memblob_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/blobtest"
	"github.com/stet-dev/stet/blob/memblob"
)

func open(*testing.T) blob.Store { return memblob.New() }

func TestContract(t *testing.T) {
	blobtest.Run(t, open)
	blobtest.RunModel(t, open)
}

func TestReferMovesBlobsToTheCurrentGeneration(t *testing.T) {
	ctx, s := t.Context(), memblob.New()
	referred, dead := blob.New([]byte("referred")), blob.New([]byte("dead"))
	mustPut(t, s, referred, dead)
	generation, err := s.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if missing := s.Refer(referred.ID); missing != nil {
		t.Fatalf("Refer: missing %v, want none", missing)
	}
	if _, err := s.Sweep(ctx, generation, blob.SweepOptions{Live: nothing}); err != nil {
		t.Fatal(err)
	}
	wantHas(t, s, []bool{true, false}, referred.ID, dead.ID)
}

func TestReferWithMissingBlobsTouchesNone(t *testing.T) {
	ctx, s := t.Context(), memblob.New()
	stored, absent := blob.New([]byte("stored")), blob.New([]byte("absent"))
	mustPut(t, s, stored)
	generation, err := s.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := s.Refer(stored.ID, absent.ID), []blob.ID{absent.ID}; !slices.Equal(got, want) {
		t.Fatalf("Refer: missing %v, want %v", got, want)
	}
	result, err := s.Sweep(ctx, generation, blob.SweepOptions{Live: nothing})
	if err != nil || result.Removed != 1 {
		t.Fatalf("Sweep: got %+v, %v, want the blob removed", result, err)
	}
}

func TestGraceEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, s := t.Context(), memblob.New()
		b := blob.New([]byte("young"))
		mustPut(t, s, b)
		for _, step := range []struct {
			wait    time.Duration
			removed int64
		}{{9 * time.Second, 0}, {time.Second, 1}} {
			time.Sleep(step.wait)
			generation, err := s.Begin(ctx)
			if err != nil {
				t.Fatal(err)
			}
			result, err := s.Sweep(ctx, generation, blob.SweepOptions{Live: nothing, GraceSeconds: 10})
			if err != nil || result.Removed != step.removed {
				t.Fatalf("Sweep %s later: got %+v, %v, want %d removed", step.wait, result, err, step.removed)
			}
		}
	})
}

func TestSweepRefusesWhatWouldRemoveTooMuch(t *testing.T) {
	ctx, s := t.Context(), memblob.New()
	b := blob.New([]byte("needed"))
	mustPut(t, s, b)
	if _, err := s.Sweep(ctx, 1, blob.SweepOptions{Live: nothing}); err == nil {
		t.Error("Sweep of a generation that was never opened: got no error")
	}
	generation, err := s.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Sweep(ctx, generation, blob.SweepOptions{}); err == nil {
		t.Error("Sweep without Live: got no error")
	}
	wantHas(t, s, []bool{true}, b.ID)
}

func TestPutIsAllOrNothing(t *testing.T) {
	ctx, s := t.Context(), memblob.New()
	good := blob.New([]byte("good"))
	bad := blob.Blob{ID: blob.Sum([]byte("bad")), Like: blob.Sum([]byte("nowhere")), Keep: 3}
	if err := s.Put(ctx, good, bad); !errors.Is(err, blob.ErrNotFound) {
		t.Fatalf("Put: got %v, want ErrNotFound", err)
	}
	bad = blob.Blob{ID: blob.Sum([]byte("bad")), Keep: -1}
	if err := s.Put(ctx, good, bad); !errors.Is(err, blob.ErrMismatch) {
		t.Fatalf("Put: got %v, want ErrMismatch", err)
	}
	if got := s.Len(); got != 0 {
		t.Errorf("Len after failed puts: got %d, want 0", got)
	}
}

func TestExtensionOfAnEarlierBlobInTheSamePut(t *testing.T) {
	ctx, s := t.Context(), memblob.New()
	builder := blob.NewBuilder()
	builder.Append([]byte("one "))
	first := builder.Blob(nil)
	builder.Commit(first)
	builder.Append([]byte("two"))
	second := builder.Blob(nil)
	mustPut(t, s, first, second)
	got, err := s.Get(ctx, second.ID)
	if err != nil || string(got) != "one two" {
		t.Errorf("Get: got %q, %v, want %q", got, err, "one two")
	}
}

func BenchmarkStore(b *testing.B) {
	blobtest.Bench(b, func(*testing.B) blob.Store { return memblob.New() })
}

func nothing(blob.ID) bool { return false }

func mustPut(t *testing.T, s blob.Store, blobs ...blob.Blob) {
	t.Helper()
	if err := s.Put(context.Background(), blobs...); err != nil {
		t.Fatal(err)
	}
}

func wantHas(t *testing.T, s blob.Store, want []bool, ids ...blob.ID) {
	t.Helper()
	got, err := s.Has(context.Background(), ids...)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("Has: got %v, %v, want %v", got, err, want)
	}
}
