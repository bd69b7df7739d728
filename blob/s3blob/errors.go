package s3blob

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/fault"
	"github.com/stet-dev/stet/internal/s3api"
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
	"PermanentRedirect":            ErrDenied,
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
	var answer *s3api.Error
	if !errors.As(err, &answer) {
		return ErrUnavailable // no answer at all: a connection or a time-out
	}
	if known, ok := codes[answer.Code]; ok {
		return known
	}
	if known, ok := statuses[answer.Status]; ok {
		return known
	}
	if answer.Status >= 500 || answer.Status < 300 {
		return ErrUnavailable // also a good status with a body that cannot be read
	}
	return nil
}

// explain adds the attempted operation and wraps the sentinel.
func explain(ctx context.Context, err error, format string, args ...any) error {
	what := fmt.Sprintf(format, args...)
	switch meaning := kind(err); {
	case ctx.Err() != nil && !errors.Is(err, ctx.Err()):
		return fmt.Errorf("%s: %w: %w", what, ctx.Err(), err)
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", what, err)
	case meaning != nil:
		return fmt.Errorf("%s: %w: %w", what, meaning, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}
