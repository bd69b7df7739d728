package contract

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing/iotest"

	"github.com/stet-dev/stet/blob"
)

// badSource runs put for small and large objects whose source does not match its
// announcement, and checks that put fails and nothing is stored.
func badSource(ctx context.Context, o blob.Objects, prefix string, source func(size int) (io.Reader, error)) error {
	for _, size := range []int{1, 1000, partsSize} {
		r, want := source(size)
		key := fmt.Sprintf("%sbad-%d", prefix, size)
		err := o.PutObject(ctx, key, r, int64(size))
		if err == nil || !errors.Is(err, want) {
			return fmt.Errorf("put of %d bytes: got %v, want %v", size, err, want)
		}
		if err := wantNothing(ctx, o, key); err != nil {
			return fmt.Errorf("after a put of %d bytes that failed: %w", size, err)
		}
	}
	return nil
}

func objectShortSource(ctx context.Context, o blob.Objects, prefix string) error {
	return badSource(ctx, o, prefix, func(size int) (io.Reader, error) {
		return newReader(fresh(size - 1)), blob.ErrMismatch
	})
}

func objectLongSource(ctx context.Context, o blob.Objects, prefix string) error {
	return badSource(ctx, o, prefix, func(size int) (io.Reader, error) {
		return newReader(fresh(size + 1)), blob.ErrMismatch
	})
}

func objectFailingSource(ctx context.Context, o blob.Objects, prefix string) error {
	broken := errors.New("the source is broken")
	return badSource(ctx, o, prefix, func(size int) (io.Reader, error) {
		return io.MultiReader(newReader(fresh(size-1)), iotest.ErrReader(broken)), broken
	})
}

func objectRemove(ctx context.Context, o blob.Objects, prefix string) error {
	var keys []string
	for i := range 30 {
		keys = append(keys, fmt.Sprintf("%sremove/%d", prefix, i))
		if err := putObject(ctx, o, keys[i], fresh(10)); err != nil {
			return err
		}
	}
	if err := o.RemoveObjects(ctx); err != nil {
		return fmt.Errorf("remove nothing: %w", err)
	}
	// Some of them twice, and one that never existed.
	gone := slices.Concat(keys[:20], keys[:1], []string{prefix + "never/was"})
	for range 2 {
		if err := o.RemoveObjects(ctx, gone...); err != nil {
			return fmt.Errorf("remove %d objects: %w", len(gone), err)
		}
	}
	infos, err := listObjects(ctx, o, prefix, "")
	if err != nil {
		return err
	}
	if got, want := len(infos), 10; got != want {
		return fmt.Errorf("list after a removal: got %d objects, want %d", got, want)
	}
	return wantNothing(ctx, o, keys[0])
}

func objectBadKeys(ctx context.Context, o blob.Objects, prefix string) error {
	for _, key := range []string{"", "/", "/" + prefix + "a", prefix + "a/", prefix + "a//b", prefix + "a/../b", "..", prefix + "./a", prefix + "a b", prefix + "ä", prefix + "a\x00", prefix + "a\\b"} {
		if err := o.PutObject(ctx, key, newReader(fresh(1)), 1); !errors.Is(err, blob.ErrInvalidID) {
			return fmt.Errorf("put %q: got %v, want %v", key, err, blob.ErrInvalidID)
		}
		if err := wantOpenError(ctx, o, key, 0, -1, blob.ErrInvalidID); err != nil {
			return fmt.Errorf("%q: %w", key, err)
		}
		if err := o.RemoveObjects(ctx, key); !errors.Is(err, blob.ErrInvalidID) {
			return fmt.Errorf("remove %q: got %v, want %v", key, err, blob.ErrInvalidID)
		}
	}
	infos, err := listObjects(ctx, o, prefix, "")
	if err == nil && len(infos) != 0 {
		err = fmt.Errorf("list: %s is there", infos[0].Key)
	}
	return err
}

// objectsAtOnce stores and reads from several goroutines, including one key from all
// of them.
func objectsAtOnce(ctx context.Context, o blob.Objects, prefix string) error {
	const workers = 8
	shared := fresh(5000)
	errs := make(chan error, workers)
	for w := range workers {
		go func() {
			own, key := fresh(3000+w), fmt.Sprintf("%sown-%d", prefix, w)
			errs <- errors.Join(
				putObject(ctx, o, key, own), putObject(ctx, o, prefix+"shared", shared),
				wantObject(ctx, o, key, own), wantObject(ctx, o, prefix+"shared", shared),
			)
		}()
	}
	var err error
	for range workers {
		err = errors.Join(err, <-errs)
	}
	return err
}

func objectDoneContext(ctx context.Context, o blob.Objects, prefix string) error {
	stored := prefix + "stored"
	if err := putObject(ctx, o, stored, fresh(10)); err != nil {
		return err
	}
	done, cancel := context.WithCancel(ctx)
	cancel()
	_, openErr := readObject(done, o, stored, 0, -1)
	_, listErr := listObjects(done, o, prefix, "")
	for name, err := range map[string]error{
		"put": putObject(done, o, prefix+"put", fresh(10)), "open": openErr, "list": listErr, "remove": o.RemoveObjects(done, stored),
	} {
		if !errors.Is(err, context.Canceled) {
			return fmt.Errorf("%s with a context that is done: got %v, want %v", name, err, context.Canceled)
		}
	}
	if err := wantNothing(ctx, o, prefix+"put"); err != nil {
		return err
	}
	got, err := readObject(ctx, o, stored, 0, -1)
	if err != nil || len(got) != 10 {
		return fmt.Errorf("after calls that were given up: got %s, %v", describe(got), err)
	}
	return nil
}
