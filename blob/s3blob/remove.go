package s3blob

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"golang.org/x/sync/errgroup"

	"github.com/stet-dev/stet/blob"
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
	refused := errors.Is(err, errors.ErrUnsupported) || hasCode(err, "InvalidRequest", "MissingContentMD5", "MalformedXML")
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
	in := &s3.DeleteObjectsInput{Bucket: &b.addr.bucket, Delete: &types.Delete{Quiet: aws.Bool(true)}}
	for _, path := range paths {
		in.Delete.Objects = append(in.Delete.Objects, types.ObjectIdentifier{Key: &path})
	}
	out, err := b.client.DeleteObjects(ctx, in)
	if err != nil {
		return explain(ctx, err, "remove together")
	}
	var errs []error
	for _, failed := range out.Errors {
		meaning, known := codes[aws.ToString(failed.Code)]
		switch {
		case errors.Is(meaning, blob.ErrNotFound):
		case known:
			errs = append(errs, fmt.Errorf("remove %q: %w: %s", aws.ToString(failed.Key), meaning, aws.ToString(failed.Message)))
		default:
			errs = append(errs, fmt.Errorf("remove %q: %s: %s", aws.ToString(failed.Key), aws.ToString(failed.Code), aws.ToString(failed.Message)))
		}
	}
	return errors.Join(errs...)
}

func (b *Bucket) removeSingly(ctx context.Context, paths []string) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(removeParallel)
	for _, path := range paths {
		group.Go(func() error {
			_, err := b.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &b.addr.bucket, Key: &path})
			if err == nil || errors.Is(kind(err), blob.ErrNotFound) {
				return nil
			}
			return explain(ctx, err, "remove %q", path)
		})
	}
	return group.Wait()
}
