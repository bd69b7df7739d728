package blobtest_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/blobtest"
	"github.com/stet-dev/stet/blob/memblob"
)

func TestFaultyWithoutRulesIsAStore(t *testing.T) {
	open := func(*testing.T) blob.Store { return blobtest.NewFaulty(memblob.New()) }
	blobtest.Run(t, open)
	blobtest.RunModel(t, open)
}

func TestFaultyFailsAndCounts(t *testing.T) {
	ctx, cause := t.Context(), errors.New("no such luck")
	f := blobtest.NewFaulty(memblob.New())
	b := blob.New([]byte("content"))

	f.FailNext(blobtest.OpPut, 2, cause)
	for i, want := range []error{cause, cause, nil} {
		if err := f.Put(ctx, b); !errors.Is(err, want) {
			t.Errorf("put %d: got %v, want %v", i, err, want)
		}
	}
	f.FailNth(2, nil)
	for i, want := range []error{nil, blobtest.ErrInjected, nil} {
		if _, err := f.Has(ctx, b.ID); !errors.Is(err, want) {
			t.Errorf("has %d: got %v, want %v", i, err, want)
		}
	}
	f.FailWhen(func(c blobtest.Call) bool { return c.Op == blobtest.OpFlush && c.NthOp == 1 && c.Nth == 7 }, cause)
	if err := f.Flush(ctx); !errors.Is(err, cause) {
		t.Errorf("flush: got %v, want %v", err, cause)
	}
	if got := f.Calls(blobtest.OpPut, blobtest.OpHas); got != 6 {
		t.Errorf("puts and has: got %d, want 6", got)
	}
	if got := f.Calls(); got != 7 {
		t.Errorf("all calls: got %d, want 7", got)
	}
}

func TestFaultyDamagesReadsAndIsFoundOut(t *testing.T) {
	ctx := t.Context()
	for name, fault := range map[string]blobtest.Fault{
		"a flipped bit": {Corrupt: true},
		"a missing end": {Truncate: 1},
		"nothing left":  {Truncate: 1 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			f := blobtest.NewFaulty(memblob.New())
			b := blob.New([]byte("some content"))
			if err := f.Put(ctx, b); err != nil {
				t.Fatal(err)
			}
			f.On(func(blobtest.Call) *blobtest.Fault { return &fault })
			checked := blob.Checked(f)
			if data, err := checked.Get(ctx, b.ID); !errors.Is(err, blob.ErrCorrupt) {
				t.Errorf("get: got %q, %v, want ErrCorrupt", data, err)
			}
			r, err := blob.Open(ctx, checked, b.ID)
			if err != nil {
				t.Fatal(err)
			}
			if data, err := io.ReadAll(r); !errors.Is(err, blob.ErrCorrupt) {
				t.Errorf("read: got %q, %v, want ErrCorrupt", data, err)
			}
			f.Heal()
			if _, err := checked.Get(ctx, b.ID); err != nil {
				t.Errorf("get after Heal: %v", err)
			}
		})
	}
}

func TestFaultyDropsWritesAndLosesReplies(t *testing.T) {
	ctx, inner := t.Context(), memblob.New()
	f := blobtest.NewFaulty(inner)
	dropped, late := blob.New([]byte("dropped")), blob.New([]byte("late"))
	f.On(func(c blobtest.Call) *blobtest.Fault {
		if len(c.IDs) == 1 && c.IDs[0] == dropped.ID {
			return &blobtest.Fault{DropWrite: true}
		}
		return &blobtest.Fault{Err: blobtest.ErrInjected, Late: true}
	})
	if err := f.Put(ctx, dropped); err != nil {
		t.Errorf("dropped put: got %v, want success", err)
	}
	if err := f.Put(ctx, late); !errors.Is(err, blobtest.ErrInjected) {
		t.Errorf("put whose reply is lost: got %v, want ErrInjected", err)
	}
	if _, err := f.Open(ctx, late.ID); !errors.Is(err, blobtest.ErrInjected) {
		t.Errorf("open whose reply is lost: got %v, want ErrInjected", err)
	}
	has, err := inner.Has(ctx, dropped.ID, late.ID)
	if err != nil || has[0] || !has[1] {
		t.Errorf("inner store has dropped, late: got %v, %v, want false, true", has, err)
	}
}

func TestFaultyDelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := blobtest.NewFaulty(memblob.New())
		f.On(func(blobtest.Call) *blobtest.Fault { return &blobtest.Fault{Delay: time.Minute} })
		begin := time.Now()
		if err := f.Flush(t.Context()); err != nil || time.Since(begin) != time.Minute {
			t.Errorf("flush: got %v after %s, want success after a minute", err, time.Since(begin))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begin = time.Now()
		if err := f.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != time.Second {
			t.Errorf("flush: got %v after %s, want the deadline after a second", err, time.Since(begin))
		}
	})
}
