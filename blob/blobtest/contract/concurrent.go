package contract

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/stet-dev/stet/blob"
)

func concurrencyCases() []Case {
	return []Case{
		{Name: "concurrent-puts-of-one-blob", Bytes: 200 << 10, Func: concurrentSame},
		{Name: "concurrent-mixed-use", Bytes: 20 << 10, Func: concurrentMixed},
		{Name: "concurrent-readers", Bytes: 64 << 10, Func: concurrentReaders},
	}
}

// together runs fn in n goroutines and returns all errors.
func together(n int, fn func(i int) error) error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = fn(i) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

func concurrentSame(ctx context.Context, s blob.Store) error {
	for _, n := range []int{20, 5000, 200 << 10} {
		b := freshBlob(n)
		err := together(8, func(i int) error {
			if i%4 == 3 {
				if err := blob.PutFrom(ctx, s, b.ID, newReader(b.Data), int64(n)); err != nil {
					return err
				}
			} else if err := put(ctx, s, b); err != nil {
				return err
			}
			return wantContent(ctx, s, b.ID, b.Data)
		})
		// A writer that cleans up after itself may take the blob of another with it.
		if err = errors.Join(err, s.Flush(ctx)); err == nil {
			err = wantContent(ctx, s, b.ID, b.Data)
		}
		if err != nil {
			return fmt.Errorf("8 writers of one blob of %d bytes: %w", n, err)
		}
	}
	return nil
}

func concurrentMixed(ctx context.Context, s blob.Store) error {
	shared := freshBlob(2000)
	if err := put(ctx, s, shared); err != nil {
		return err
	}
	return together(8, func(worker int) error {
		like := shared
		for i := range 15 {
			b := freshBlob(worker*100 + i*37 + 10)
			b.Like = like.ID
			grown, whole := extension(shared, 1000, fresh(i+1))
			if err := put(ctx, s, b, grown); err != nil {
				return err
			}
			if i%5 == worker%5 {
				if err := s.Flush(ctx); err != nil {
					return err
				}
			}
			err := errors.Join(
				wantContent(ctx, s, b.ID, b.Data),
				wantContent(ctx, s, grown.ID, whole),
				wantContent(ctx, s, shared.ID, shared.Data),
				wantAbsent(ctx, s, freshBlob(9).ID))
			if err != nil {
				return fmt.Errorf("worker %d, round %d: %w", worker, i, err)
			}
			like = b
		}
		return nil
	})
}

// concurrentReaders cancels some readers while others go on.
func concurrentReaders(ctx context.Context, s blob.Store) error {
	b := freshBlob(64 << 10)
	if err := put(ctx, s, b); err != nil {
		return err
	}
	return together(12, func(i int) error {
		if i%3 != 0 {
			return wantContent(ctx, s, b.ID, b.Data)
		}
		ctx, cancel := context.WithCancel(ctx)
		go cancel()
		data, err := s.Get(ctx, b.ID)
		switch {
		case err == nil && blob.Sum(data) != b.ID:
			return fmt.Errorf("get that was cancelled midway: got %s", describe(data))
		case errors.Is(err, blob.ErrNotFound), errors.Is(err, blob.ErrCorrupt):
			return fmt.Errorf("get that was cancelled midway blames the blob: %w", err)
		}
		return nil
	})
}
