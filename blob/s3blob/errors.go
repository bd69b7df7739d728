package s3blob

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/fault"
)

// Errors that callers branch on with errors.Is, besides blob's.
var (
	// ErrDenied says that the credentials are missing, wrong, or lack the permission.
	ErrDenied = fault.New(fault.Denied, "access to the bucket is denied")
	// ErrNoBucket says that there is no such bucket. It does not wrap blob.ErrNotFound,
	// which would say that an object is missing from the bucket.
	ErrNoBucket = fault.New(fault.NotFound, "the bucket does not exist")
	// ErrUnavailable says that the bucket could not be reached, or answered with
	// failures, until all retries were used.
	ErrUnavailable = fault.Named(fault.Unreachable, "bucket-unreachable", "the bucket is unavailable")
)

// codes are error codes whose meaning the HTTP status does not show.
var codes = map[string]error{
	"NoSuchKey":                    blob.ErrNotFound,
	"NoSuchBucket":                 ErrNoBucket,
	"AccessDenied":                 ErrDenied,
	"InvalidAccessKeyId":           ErrDenied,
	"XAdminUserNotFound":           ErrDenied,
	"SignatureDoesNotMatch":        ErrDenied,
	"ExpiredToken":                 ErrDenied,
	"InvalidToken":                 ErrDenied,
	"RequestTimeTooSkewed":         ErrDenied,
	"AuthorizationHeaderMalformed": ErrDenied,
	"AllAccessDisabled":            ErrDenied,
	"InvalidRange":                 blob.ErrCorrupt,
	"EntityTooLarge":               blob.ErrTooLarge,
	"QuotaExceeded":                blob.ErrFull,
	"XMinioStorageFull":            blob.ErrFull,
	"SlowDown":                     ErrUnavailable,
	"RequestTimeout":               ErrUnavailable,
	"BadDigest":                    ErrUnavailable,
	"XAmzContentSHA256Mismatch":    ErrUnavailable,
	"XAmzContentChecksumMismatch":  ErrUnavailable,
	"IncompleteBody":               ErrUnavailable,
	"NotImplemented":               errors.ErrUnsupported,
	"MethodNotAllowed":             errors.ErrUnsupported,
}

// damagedCodes mean that a body was damaged on the way.
var damagedCodes = []string{"BadDigest", "XAmzContentSHA256Mismatch", "XAmzContentChecksumMismatch", "IncompleteBody", "RequestTimeout"}

// statuses are used if the answer has no known code. 404 is not included: gateways
// and services return it for many reasons, and only a code shows that the object is
// missing.
var statuses = map[int]error{
	http.StatusUnauthorized:                 ErrDenied,
	http.StatusForbidden:                    ErrDenied,
	http.StatusMethodNotAllowed:             errors.ErrUnsupported,
	http.StatusRequestedRangeNotSatisfiable: blob.ErrCorrupt,
	http.StatusTooManyRequests:              ErrUnavailable,
	http.StatusNotImplemented:               errors.ErrUnsupported,
	http.StatusInsufficientStorage:          blob.ErrFull,
}

// kind returns the sentinel for an error of the client, or nil.
func kind(err error) error {
	var api smithy.APIError
	if errors.As(err, &api) {
		if known, ok := codes[api.ErrorCode()]; ok {
			return known
		}
	}
	var response *awshttp.ResponseError
	if !errors.As(err, &response) {
		return ErrUnavailable // no answer at all: a connection or a time-out
	}
	if known, ok := statuses[response.HTTPStatusCode()]; ok {
		return known
	}
	if status := response.HTTPStatusCode(); status >= 500 || status < 300 {
		return ErrUnavailable // also no status, or a good one with a body that cannot be read
	}
	return nil
}

// explain adds the attempted operation and wraps the sentinel.
func explain(ctx context.Context, err error, format string, args ...any) error {
	what, short := fmt.Sprintf(format, args...), &failure{err}
	switch meaning := kind(err); {
	case ctx.Err() != nil:
		// The client reports the end of a context in varying ways.
		return fmt.Errorf("%s: %w: %w", what, ctx.Err(), short)
	case meaning != nil:
		return fmt.Errorf("%s: %w: %w", what, meaning, short)
	}
	return fmt.Errorf("%s: %w", what, short)
}

// failure is an error of the client without addresses and internal identifiers,
// except the request id.
type failure struct{ err error }

func (f *failure) Unwrap() error { return f.err }

func (f *failure) Error() string {
	var sent *url.Error
	if errors.As(f.err, &sent) {
		return sent.Err.Error()
	}
	var response *awshttp.ResponseError
	var api smithy.APIError
	if !errors.As(f.err, &response) || !errors.As(f.err, &api) {
		return f.err.Error()
	}
	return fmt.Sprintf("%s: %s (status %d, request %s)", api.ErrorCode(), api.ErrorMessage(), response.HTTPStatusCode(), response.ServiceRequestID())
}

// hasCode reports whether the service answered with one of some codes.
func hasCode(err error, codes ...string) bool {
	var api smithy.APIError
	return errors.As(err, &api) && slices.Contains(codes, api.ErrorCode())
}
