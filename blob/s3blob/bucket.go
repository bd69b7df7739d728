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
	// minPartSize is the least that S3 takes as a part which is not the last.
	minPartSize = 5 << 20
	// maxParts is how many parts an object may have.
	maxParts = 10_000
	// maxObject is the largest object of S3.
	maxObject = 5 << 40
	// defaultRegion serves where an endpoint of one's own has no regions.
	defaultRegion = "us-east-1"
)

// Options shape a bucket; nil and the zero value work.
type Options struct {
	// Credentials replace the usual search for them.
	Credentials aws.CredentialsProvider
	// PartSize is up to which size an object is sent in one piece and, above, the
	// size of its parts. The default is 8 MiB, the least 5 MiB. Objects of more than
	// 10,000 parts get larger ones.
	PartSize int64
	// Parallel is how many parts of one object are sent at a time: a PutObject holds
	// one part more in memory. The default is 2.
	Parallel int
	// MaxAttempts is how often a request is tried. The default is 5.
	MaxAttempts int
	// MaxWait bounds the growing waits between attempts. The default is 5 s.
	MaxWait time.Duration
	// IdleTimeout ends a connection on which nothing has moved for so long. The
	// default is 1 min.
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

// Bucket is a bucket, or the part of one below a prefix. It is safe for
// concurrent use and needs no closing.
type Bucket struct {
	client *s3.Client
	addr   address
	opts   Options
	// noChecksums is set when the service refused a checksum of a whole upload, and
	// singly when it cannot remove several objects at a time.
	noChecksums, singly atomic.Bool
	buffers             sync.Pool // of *[]byte, each of the size of a part
}

var _ blob.Objects = (*Bucket)(nil)

// Open returns the bucket of an address
//
//	s3://bucket/prefix?region=…&endpoint=http://127.0.0.1:9000&path-style=true
//
// of which only the bucket is needed: the region may also come from the
// environment, the endpoint is for services other than AWS, and path-style is the
// default where there is one. Open looks for credentials but does not speak to
// the bucket; Check does.
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
		// Checksums of ours travel in headers: not every service knows trailers.
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
		config.WithLogger(logging.Nop{}), // what matters is returned
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

// httpClient gives up on a connection that does not move, however long the whole
// may take.
func (b *Bucket) httpClient() *awshttp.BuildableClient {
	return awshttp.NewBuildableClient().
		WithReadTimeout(b.opts.IdleTimeout).
		WithTransportOptions(func(t *http.Transport) {
			t.MaxIdleConns, t.MaxIdleConnsPerHost = 64, 64
			// Compressed answers would change what is read.
			t.DisableCompression = true
		})
}

// retryer has no quota over several calls, which would make the outcome of one
// depend on others.
func (b *Bucket) retryer() aws.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts, o.MaxBackoff = b.opts.MaxAttempts, b.opts.MaxWait
		o.RateLimiter = ratelimit.None
		o.Retryables = append(o.Retryables, damaged,
			retry.RetryableHTTPStatusCode{Codes: map[int]struct{}{http.StatusTooManyRequests: {}}})
	})
}

// damaged are failures of the way, not of the request: a body that arrived
// changed or cut, and an answer that did.
var damaged = retry.IsErrorRetryableFunc(func(err error) aws.Ternary {
	if errors.Is(err, io.ErrUnexpectedEOF) || hasCode(err, damagedCodes...) {
		return aws.TrueTernary
	}
	return aws.UnknownTernary
})

// String returns the address without its parameters.
func (b *Bucket) String() string { return "s3://" + b.addr.bucket + "/" + b.addr.prefix }
