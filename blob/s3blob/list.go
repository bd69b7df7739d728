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

// ListObjects implements blob.Objects. Objects whose keys PutObject would refuse
// are somebody else's and left out.
func (b *Bucket) ListObjects(ctx context.Context, prefix, after string, fn func(blob.ObjectInfo) error) error {
	list := &listing{prefix: b.addr.prefix, wanted: b.addr.prefix + prefix, last: b.addr.prefix + after}
	in := &s3.ListObjectsV2Input{Bucket: &b.addr.bucket, Prefix: &list.wanted}
	if after != "" {
		in.StartAfter = &list.last
	}
	for {
		out, err := b.client.ListObjectsV2(ctx, in)
		if err != nil {
			return explain(ctx, err, "list objects that begin with %q", prefix)
		}
		for i := range out.Contents {
			info, err := list.next(&out.Contents[i])
			if err != nil {
				return fmt.Errorf("list objects that begin with %q: %w", prefix, err)
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
			return fmt.Errorf("list objects that begin with %q: %w", prefix, err)
		}
		in.ContinuationToken = out.NextContinuationToken
	}
}

// listing checks what a service lists: a sweep must not miss an object because
// the service has ideas of its own about order.
type listing struct {
	prefix string // of the bucket
	wanted string // prefix of what is listed
	last   string // path of the last object
	begun  bool
	token  string
}

// next returns what an entry says, or nothing where it is to be left out.
func (l *listing) next(entry *types.Object) (blob.ObjectInfo, error) {
	path := aws.ToString(entry.Key)
	if path <= l.last {
		if l.begun {
			return blob.ObjectInfo{}, fmt.Errorf("%w: the service lists %q after %q", errors.ErrUnsupported, path, l.last)
		}
		return blob.ObjectInfo{}, nil // it does not know where to start
	}
	l.last, l.begun = path, true
	key, ours := strings.CutPrefix(path, l.prefix)
	if !ours || !strings.HasPrefix(path, l.wanted) || checkKey(key) != nil {
		return blob.ObjectInfo{}, nil
	}
	return blob.ObjectInfo{Key: key, Size: aws.ToInt64(entry.Size), Time: aws.ToTime(entry.LastModified)}, nil
}

// turn goes on to the next page, and not round in circles.
func (l *listing) turn(out *s3.ListObjectsV2Output) error {
	token := aws.ToString(out.NextContinuationToken)
	if token == "" || token == l.token {
		return fmt.Errorf("%w: the service lists part of the objects and does not say how to go on", errors.ErrUnsupported)
	}
	l.token = token
	return nil
}
