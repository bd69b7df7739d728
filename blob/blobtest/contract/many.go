package contract

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/stet-dev/stet/blob"
)

func manyCases() []Case {
	return []Case{
		{Name: "read-many", Bytes: 300 << 10, Func: readMany},
		{Name: "read-many-finds-what-comes-meanwhile", Bytes: 300 << 10, Func: readManyMeanwhile},
		{Name: "read-many-fails-with-its-user", Func: readManyFails},
	}
}

func readMany(ctx context.Context, s blob.Store) error {
	blobs := []blob.Blob{freshBlob(100), freshBlob(300 << 10), blob.New(nil), freshBlob(5000)}
	if err := put(ctx, s, blobs...); err != nil {
		return err
	}
	absent := freshBlob(50).ID
	calls := 0
	err := blob.ReadMany(ctx, s, func(r blob.Reader) error {
		calls++
		for range 2 {
			for _, b := range blobs {
				if err := wantRead(ctx, r, b); err != nil {
					return err
				}
			}
			if data, err := r.Get(ctx, absent); !errors.Is(err, blob.ErrNotFound) {
				return fmt.Errorf("get absent: got %s and error %v, want ErrNotFound", describe(data), err)
			}
		}
		has, err := r.Has(ctx, blobs[0].ID, absent, blobs[1].ID, blobs[2].ID)
		if want := []bool{true, false, true, true}; err == nil && !slices.Equal(has, want) {
			return fmt.Errorf("has: got %v, want %v", has, want)
		}
		return err
	})
	if err == nil && calls != 1 {
		return fmt.Errorf("called %d times", calls)
	}
	return err
}

func wantRead(ctx context.Context, r blob.Reader, want blob.Blob) error {
	data, err := r.Get(ctx, want.ID)
	if err != nil {
		return fmt.Errorf("get %s: %w", want.ID.Short(), err)
	}
	if !bytes.Equal(data, want.Data) {
		return fmt.Errorf("get %s: got %s, want %s", want.ID.Short(), describe(data), describe(want.Data))
	}
	return nil
}

// readManyMeanwhile puts and flushes other blobs while a reader is open.
func readManyMeanwhile(ctx context.Context, s blob.Store) error {
	first := freshBlob(100)
	if err := put(ctx, s, first); err != nil {
		return err
	}
	if err := s.Flush(ctx); err != nil {
		return fmt.Errorf("flush: %w", err)
	}
	return blob.ReadMany(ctx, s, func(r blob.Reader) error {
		for i, flushed := range []bool{false, true, false, true} {
			if err := wantRead(ctx, r, first); err != nil {
				return err
			}
			later := []blob.Blob{freshBlob(200), freshBlob(300 << 10)}
			if err := putElsewhere(ctx, s, flushed, later); err != nil {
				return err
			}
			if i >= 2 {
				has, err := r.Has(ctx, later[0].ID, later[1].ID)
				if err != nil || !has[0] || !has[1] {
					return fmt.Errorf("has of what came meanwhile (flushed: %t): got %v and error %v", flushed, has, err)
				}
			}
			for _, b := range later {
				if err := wantRead(ctx, r, b); err != nil {
					return fmt.Errorf("what came meanwhile (flushed: %t): %w", flushed, err)
				}
			}
		}
		return nil
	})
}

// putElsewhere puts in another goroutine, like another caller.
func putElsewhere(ctx context.Context, s blob.Store, flush bool, blobs []blob.Blob) error {
	done := make(chan error, 1)
	go func() {
		err := s.Put(ctx, blobs...)
		if err == nil && flush {
			err = s.Flush(ctx)
		}
		done <- err
	}()
	return <-done
}

func readManyFails(ctx context.Context, s blob.Store) error {
	want := errors.New("no more")
	if err := blob.ReadMany(ctx, s, func(blob.Reader) error { return want }); !errors.Is(err, want) {
		return fmt.Errorf("a user that fails: got error %v", err)
	}
	done, cancel := context.WithCancel(ctx)
	cancel()
	err := blob.ReadMany(done, s, func(blob.Reader) error { return nil })
	if !errors.Is(err, context.Canceled) {
		return fmt.Errorf("with a context that is done: got error %v", err)
	}
	// None of that blocks other callers.
	return roundTrip(ctx, s, fresh(100))
}
