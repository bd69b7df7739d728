package s3blob

import (
	"context"
	"fmt"
	"time"

	"github.com/stet-dev/stet/blob"
)

const (
	// maxTTL is the longest validity of an address in S3.
	maxTTL = 7 * 24 * time.Hour
	// defaultTTL is how long the addresses of a Presigner are valid.
	defaultTTL = 15 * time.Minute
)

// PresignGet returns an address from which anyone can download an object for a while,
// without other credentials. It is itself a secret: keep it out of logs. It expires
// earlier if the credentials of the bucket do.
func (b *Bucket) PresignGet(ctx context.Context, key string, ttl time.Duration) (string, error) {
	path, err := b.presignable(key, ttl)
	if err != nil {
		return "", err
	}
	address, err := b.client.PresignGet(ctx, path, ttl)
	if err != nil {
		return "", explain(ctx, err, "sign an address to download %q", key)
	}
	return address, nil
}

// PresignPut is PresignGet for uploading by PUT. An existing object is replaced.
func (b *Bucket) PresignPut(ctx context.Context, key string, ttl time.Duration) (string, error) {
	path, err := b.presignable(key, ttl)
	if err != nil {
		return "", err
	}
	address, err := b.client.PresignPut(ctx, path, ttl)
	if err != nil {
		return "", explain(ctx, err, "sign an address to upload %q", key)
	}
	return address, nil
}

func (b *Bucket) presignable(key string, ttl time.Duration) (string, error) {
	path, err := b.path(key)
	if err != nil {
		return "", fmt.Errorf("sign an address of %q: %w", key, err)
	}
	if ttl < time.Second || ttl > maxTTL {
		return "", fmt.Errorf("sign an address of %q: the validity must be from 1 s to %s, not %s", key, maxTTL, ttl)
	}
	return path, nil
}

// Presigner makes addresses of the snapshots of cloud agents, which lie under
// snapshots/<agent>/<snapshot>.
type Presigner struct {
	// Bucket holds the snapshots.
	Bucket *Bucket
	// TTL is how long an address is valid. The default is 15 min.
	TTL time.Duration
}

// Presign returns an address to download a snapshot from or, with upload, to
// upload it to.
func (p *Presigner) Presign(ctx context.Context, agent, snapshot string, upload bool) (string, error) {
	if agent == "" || snapshot == "" {
		return "", fmt.Errorf("%w: snapshot %q of agent %q", blob.ErrInvalidID, snapshot, agent)
	}
	ttl := p.TTL
	if ttl <= 0 {
		ttl = defaultTTL
	}
	key := SnapshotKey(agent, snapshot)
	if upload {
		return p.Bucket.PresignPut(ctx, key, ttl)
	}
	return p.Bucket.PresignGet(ctx, key, ttl)
}

// SnapshotKey returns the key of a snapshot; bytes of the ids that a key cannot hold
// are escaped.
func SnapshotKey(agent, snapshot string) string {
	return "snapshots/" + escape(agent) + "/" + escape(snapshot)
}
