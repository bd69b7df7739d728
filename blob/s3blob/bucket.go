package s3blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/logging"

	"github.com/stet-dev/stet/blob"
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
	Credentials aws.CredentialsProvider
	// Objects up to PartSize are sent in one piece, larger ones in parts of that
	// size. The default is 8 MiB, the minimum 5 MiB. Parts are larger if an object
	// would need more than 10,000.
	PartSize int64
	// Parallel is how many parts of one object are sent at a time; PutObject holds
	// one more part in memory. The default is 2.
	Parallel int
	// MaxAttempts is how often a request is tried. The default is 5.
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
	client *s3.Client
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
	cfg, err := b.config(ctx)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", b, err)
	}
	b.client = s3.NewFromConfig(cfg, func(o *s3.Options) {
		o.UsePathStyle = addr.pathStyle
		if addr.endpoint != "" {
			o.BaseEndpoint = aws.String(addr.endpoint)
		}
		// Send our checksums in headers: not every service supports trailers.
		o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
		o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
		o.DisableLogOutputChecksumValidationSkipped = true
	})
	return b, nil
}

// config looks for region and credentials.
func (b *Bucket) config(ctx context.Context) (aws.Config, error) {
	options := []func(*config.LoadOptions) error{
		config.WithHTTPClient(b.httpClient()),
		config.WithRetryer(b.retryer),
		config.WithLogger(logging.Nop{}), // errors are returned
	}
	if b.opts.Credentials != nil {
		options = append(options, config.WithCredentialsProvider(b.opts.Credentials))
	}
	if b.addr.region != "" {
		options = append(options, config.WithRegion(b.addr.region))
	}
	cfg, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return cfg, fmt.Errorf("load the configuration of AWS tools: %w", err)
	}
	if cfg.Region == "" {
		if b.addr.endpoint == "" {
			return cfg, errors.New("no region: add ?region=… to the address or set AWS_REGION")
		}
		cfg.Region = defaultRegion
	}
	if cfg.Credentials == nil {
		return cfg, fmt.Errorf("%w: no credentials", ErrDenied)
	}
	if _, err := cfg.Credentials.Retrieve(ctx); err != nil {
		return cfg, fmt.Errorf("%w: no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile or role: %w", ErrDenied, err)
	}
	return cfg, nil
}

// httpClient gives up on an idle connection, but sets no limit on the total time.
func (b *Bucket) httpClient() *awshttp.BuildableClient {
	return awshttp.NewBuildableClient().
		WithReadTimeout(b.opts.IdleTimeout).
		WithTransportOptions(func(t *http.Transport) {
			t.MaxIdleConns, t.MaxIdleConnsPerHost = 64, 64
			// Compressed answers would change the bytes read.
			t.DisableCompression = true
		})
}

// retryer has no quota across calls, which would make one call depend on others.
func (b *Bucket) retryer() aws.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts, o.MaxBackoff = b.opts.MaxAttempts, b.opts.MaxWait
		o.RateLimiter = ratelimit.None
		o.Retryables = append(o.Retryables, damaged,
			retry.RetryableHTTPStatusCode{Codes: map[int]struct{}{http.StatusTooManyRequests: {}}})
	})
}

// damaged matches transport failures: a request or response body that arrived changed
// or cut.
var damaged = retry.IsErrorRetryableFunc(func(err error) aws.Ternary {
	if errors.Is(err, io.ErrUnexpectedEOF) || hasCode(err, damagedCodes...) {
		return aws.TrueTernary
	}
	return aws.UnknownTernary
})

// String returns the address without its parameters.
func (b *Bucket) String() string { return "s3://" + b.addr.bucket + "/" + b.addr.prefix }
