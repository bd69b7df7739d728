package s3blob

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/internal/s3api"
)

const (
	// removeBatch is how many objects S3 removes by one request.
	removeBatch = 1000
	// removeParallel is how many single removals run at a time.
	removeParallel = 8
)

// RemoveObjects implements blob.Objects. In a versioned bucket, old versions stay
// until a rule of the bucket removes them.
func (b *Bucket) RemoveObjects(ctx context.Context, keys ...string) error {
	paths := make([]string, len(keys))
	for i, key := range keys {
		var err error
		if paths[i], err = b.path(key); err != nil {
			return fmt.Errorf("remove object %q: %w", key, err)
		}
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("remove objects: %w", err)
	}
	for batch := range slices.Chunk(paths, removeBatch) {
		if err := b.removeBatch(ctx, batch); err != nil {
			return fmt.Errorf("remove %d objects: %w", len(batch), err)
		}
	}
	return nil
}

// removeBatch removes a batch by one request or, if the service cannot, one by one.
func (b *Bucket) removeBatch(ctx context.Context, paths []string) error {
	if len(paths) == 1 || b.singly.Load() {
		return b.removeSingly(ctx, paths)
	}
	err := b.removeTogether(ctx, paths)
	refused := errors.Is(err, errors.ErrUnsupported) || s3api.HasCode(err, "InvalidRequest", "MissingContentMD5", "MalformedXML")
	if !refused {
		return err
	}
	if single := b.removeSingly(ctx, paths); single != nil {
		return errors.Join(err, single)
	}
	b.singly.Store(true)
	return nil
}

func (b *Bucket) removeTogether(ctx context.Context, paths []string) error {
	left, err := b.client.DeleteAll(ctx, paths)
	if err != nil {
		return explain(ctx, err, "remove together")
	}
	var errs []error
	for _, failed := range left {
		meaning, known := codes[failed.Code]
		switch {
		case errors.Is(meaning, blob.ErrNotFound):
		case known:
			errs = append(errs, fmt.Errorf("remove %q: %w: %s", failed.Key, meaning, failed.Message))
		default:
			errs = append(errs, fmt.Errorf("remove %q: %s: %s", failed.Key, failed.Code, failed.Message))
		}
	}
	return errors.Join(errs...)
}

func (b *Bucket) removeSingly(ctx context.Context, paths []string) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(removeParallel)
	for _, path := range paths {
		group.Go(func() error {
			err := b.client.Delete(ctx, path)
			if err == nil || errors.Is(kind(err), blob.ErrNotFound) {
				return nil
			}
			return explain(ctx, err, "remove %q", path)
		})
	}
	return group.Wait()
}
