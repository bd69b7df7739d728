package s3blob

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/internal/awsconfig"
	"github.com/stet-dev/stet/internal/s3api"
)

const (
	// minPartSize is the smallest part that S3 accepts, except for the last one.
	minPartSize = 5 << 20
	// maxParts is how many parts an object may have.
	maxParts = 10_000
	// maxObject is the largest object of S3.
	maxObject = 5 << 40
	// defaultRegion is used for custom endpoints, which have no regions.
	defaultRegion = "us-east-1"
)

// Options configure a bucket; nil and the zero value work.
type Options struct {
	// Credentials, if set, are used instead of the default search.
	Credentials Credentials
	// Objects up to PartSize are sent in one piece, larger ones in parts of that
	// size. The default is 8 MiB, the minimum 5 MiB. Parts are larger if an object
	// would need more than 10,000.
	PartSize int64
	// Parallel is how many parts of one object are sent at a time; PutObject holds
	// one more part in memory. The default is 2.
	Parallel int
	// MaxAttempts is how often a request is tried. The default is 5; AWS_MAX_ATTEMPTS
	// has no effect.
	MaxAttempts int
	// MaxWait limits the growing waits between attempts. The default is 5 s.
	MaxWait time.Duration
	// IdleTimeout ends a connection without traffic for that long. The default is 1
	// min.
	IdleTimeout time.Duration
}

func (o *Options) withDefaults() Options {
	var opts Options
	if o != nil {
		opts = *o
	}
	if opts.PartSize <= 0 {
		opts.PartSize = 8 << 20
	}
	opts.PartSize = max(opts.PartSize, minPartSize)
	if opts.Parallel <= 0 {
		opts.Parallel = 2
	}
	if opts.MaxAttempts <= 0 {
		opts.MaxAttempts = 5
	}
	if opts.MaxWait <= 0 {
		opts.MaxWait = 5 * time.Second
	}
	if opts.IdleTimeout <= 0 {
		opts.IdleTimeout = time.Minute
	}
	return opts
}

// Bucket is a bucket, or the part of one below a prefix. It is safe for concurrent
// use and need not be closed.
type Bucket struct {
	client *s3api.Client
	addr   address
	opts   Options
	// noChecksums is set if the service refuses a checksum of a whole upload, singly
	// if it cannot remove several objects at once.
	noChecksums, singly atomic.Bool
	buffers             sync.Pool // of *[]byte, each of the size of a part
}

var _ blob.Objects = (*Bucket)(nil)

// Open returns the bucket of an address:
//
//	s3://bucket/prefix?region=…&endpoint=http://127.0.0.1:9000&path-style=true
//
// Only the bucket is required: the region may also come from the environment, the
// endpoint is for services other than AWS, and path-style is the default if there is
// an endpoint. Open looks for credentials but does not connect to the bucket; Check
// does.
func Open(ctx context.Context, rawURL string, opts *Options) (*Bucket, error) {
	addr, err := parseAddress(rawURL)
	if err != nil {
		return nil, err
	}
	b := &Bucket{addr: addr, opts: opts.withDefaults()}
	if b.client, err = b.connect(ctx); err != nil {
		return nil, fmt.Errorf("open %s: %w", b, err)
	}
	return b, nil
}

// connect looks for region, endpoint and credentials.
func (b *Bucket) connect(ctx context.Context) (*s3api.Client, error) {
	settings, err := awsconfig.Load(b.addr.region)
	if err != nil {
		return nil, err
	}
	region, endpoint := settings.Region, cmp.Or(b.addr.endpoint, settings.Endpoint("S3"))
	switch {
	case region == "" && endpoint == "":
		return nil, errors.New("no region: add ?region=… to the address or set AWS_REGION")
	case region == "":
		region = defaultRegion
	case endpoint == "":
		if endpoint, err = s3api.Endpoint(settings.HostOf("s3"), region); err != nil {
			return nil, err
		}
	}
	credentials := settings.Credentials
	if b.opts.Credentials != nil {
		credentials = awsconfig.Cached(b.opts.Credentials.source)
	}
	if _, err := credentials(ctx); err != nil {
		return nil, fmt.Errorf("%w: no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile or role: %w", ErrDenied, err)
	}
	return s3api.New(s3api.Config{
		Bucket: b.addr.bucket, Region: region, Endpoint: endpoint, PathStyle: b.addr.pathStyle, Credentials: credentials,
		HTTP: s3api.NewHTTP(b.opts.IdleTimeout, settings.Roots), MaxAttempts: b.opts.MaxAttempts, MaxWait: b.opts.MaxWait,
	})
}

// String returns the address without its parameters.
func (b *Bucket) String() string { return "s3://" + b.addr.bucket + "/" + b.addr.prefix }
