package s3blob

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/internal/s3api"
)

// ListObjects implements blob.Objects. It skips objects whose keys PutObject would
// reject; they are not ours.
func (b *Bucket) ListObjects(ctx context.Context, prefix, after string, fn func(blob.ObjectInfo) error) error {
	list := &listing{prefix: b.addr.prefix, wanted: b.addr.prefix + prefix, last: b.addr.prefix + after}
	query := s3api.Query{Prefix: list.wanted}
	if after != "" {
		query.After = list.last
	}
	for {
		out, err := b.client.List(ctx, query)
		if err != nil {
			return explain(ctx, err, "list objects with prefix %q", prefix)
		}
		for _, entry := range out.Entries {
			info, err := list.next(entry)
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
		if !out.More {
			return nil
		}
		if err := list.turn(out.Token); err != nil {
			return fmt.Errorf("list objects with prefix %q: %w", prefix, err)
		}
		query.Token = out.Token
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
func (l *listing) next(entry s3api.Entry) (blob.ObjectInfo, error) {
	path := entry.Key
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
	return blob.ObjectInfo{Key: key, Size: entry.Size, Time: entry.Time}, nil
}

// turn goes on to the next page and detects loops.
func (l *listing) turn(token string) error {
	if token == "" || token == l.token {
		return fmt.Errorf("%w: the service lists some objects and does not say how to continue", errors.ErrUnsupported)
	}
	l.token = token
	return nil
}
