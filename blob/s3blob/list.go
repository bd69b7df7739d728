package s3blob

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/stet-dev/stet/blob"
)

// ListObjects implements blob.Objects. It skips objects whose keys PutObject would
// reject; they are not ours.
func (b *Bucket) ListObjects(ctx context.Context, prefix, after string, fn func(blob.ObjectInfo) error) error {
	list := &listing{prefix: b.addr.prefix, wanted: b.addr.prefix + prefix, last: b.addr.prefix + after}
	in := &s3.ListObjectsV2Input{Bucket: &b.addr.bucket, Prefix: &list.wanted}
	if after != "" {
		in.StartAfter = &list.last
	}
	for {
		out, err := b.client.ListObjectsV2(ctx, in)
		if err != nil {
			return explain(ctx, err, "list objects with prefix %q", prefix)
		}
		for i := range out.Contents {
			info, err := list.next(&out.Contents[i])
			if err != nil {
				return fmt.Errorf("list objects with prefix %q: %w", prefix, err)
			}
			if info.Key == "" {
				continue
			}
			if err := fn(info); err != nil {
				return err
			}
		}
		if !aws.ToBool(out.IsTruncated) {
			return nil
		}
		if err := list.turn(out); err != nil {
			return fmt.Errorf("list objects with prefix %q: %w", prefix, err)
		}
		in.ContinuationToken = out.NextContinuationToken
	}
}

// listing checks the order of a service's list: a sweep must not miss an object
// because the service sorts differently.
type listing struct {
	prefix string // of the bucket
	wanted string // prefix of the listed objects
	last   string // path of the last object
	begun  bool
	token  string
}

// next returns an entry, or the zero value to skip it.
func (l *listing) next(entry *types.Object) (blob.ObjectInfo, error) {
	path := aws.ToString(entry.Key)
	if path <= l.last {
		if l.begun {
			return blob.ObjectInfo{}, fmt.Errorf("%w: the service lists %q after %q", errors.ErrUnsupported, path, l.last)
		}
		return blob.ObjectInfo{}, nil // the service ignores StartAfter
	}
	l.last, l.begun = path, true
	key, ours := strings.CutPrefix(path, l.prefix)
	if !ours || !strings.HasPrefix(path, l.wanted) || checkKey(key) != nil {
		return blob.ObjectInfo{}, nil
	}
	return blob.ObjectInfo{Key: key, Size: aws.ToInt64(entry.Size), Time: aws.ToTime(entry.LastModified)}, nil
}

// turn goes on to the next page and detects loops.
func (l *listing) turn(out *s3.ListObjectsV2Output) error {
	token := aws.ToString(out.NextContinuationToken)
	if token == "" || token == l.token {
		return fmt.Errorf("%w: the service lists some objects and does not say how to continue", errors.ErrUnsupported)
	}
	l.token = token
	return nil
}
