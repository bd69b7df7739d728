package fleet

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/s3blob"
)

// prefixed is the part of a bucket below a prefix.
type prefixed struct {
	inner  blob.Objects
	prefix string
}

func (p *prefixed) PutObject(ctx context.Context, key string, r io.Reader, size int64) error {
	return p.inner.PutObject(ctx, p.prefix+key, r, size)
}

func (p *prefixed) OpenObject(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	return p.inner.OpenObject(ctx, p.prefix+key, offset, length)
}

func (p *prefixed) RemoveObjects(ctx context.Context, keys ...string) error {
	full := make([]string, len(keys))
	for i, key := range keys {
		full[i] = p.prefix + key
	}
	return p.inner.RemoveObjects(ctx, full...)
}

func (p *prefixed) ListObjects(ctx context.Context, prefix, after string, fn func(blob.ObjectInfo) error) error {
	if after != "" {
		after = p.prefix + after
	}
	return p.inner.ListObjects(ctx, p.prefix+prefix, after, func(o blob.ObjectInfo) error {
		o.Key = strings.TrimPrefix(o.Key, p.prefix)
		return fn(o)
	})
}

// presigner creates addresses of the snapshots of one tenant's agents: agent ids are
// unique only within a tenant.
type presigner struct {
	bucket *s3blob.Bucket
	prefix string
}

// presignTime is how long an address is valid.
const presignTime = 15 * time.Minute

// Presign implements cloudagent.Presigner.
func (p *presigner) Presign(ctx context.Context, agent, snapshot string, upload bool) (string, error) {
	key := p.prefix + s3blob.SnapshotKey(agent, snapshot)
	if upload {
		return p.bucket.PresignPut(ctx, key, presignTime)
	}
	return p.bucket.PresignGet(ctx, key, presignTime)
}
