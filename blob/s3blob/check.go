package s3blob

import (
	"context"
	"errors"
	"fmt"

	"github.com/stet-dev/stet/internal/s3api"
)

// hints say what to do about an error code.
var hints = map[string]string{
	"NoSuchBucket":                 "create it, or correct its name in the address",
	"InvalidAccessKeyId":           "unknown access key",
	"XAdminUserNotFound":           "unknown access key",
	"SignatureDoesNotMatch":        "the secret key does not belong to the access key",
	"RequestTimeTooSkewed":         "the clock of this machine is wrong",
	"ExpiredToken":                 "the credentials have expired",
	"AuthorizationHeaderMalformed": "the bucket is in another region than the address says",
	"PermanentRedirect":            "the bucket is in another region than the address says",
	"AccessDenied":                 "the credentials need s3:ListBucket, s3:GetObject, s3:PutObject, s3:DeleteObject and s3:AbortMultipartUpload on it",
}

// Check tests with one small request whether the bucket can be used. Its error says
// what to do and wraps ErrNoBucket, ErrDenied or ErrUnavailable.
func (b *Bucket) Check(ctx context.Context) error {
	err := b.client.HeadBucket(ctx)
	if err == nil {
		return nil
	}
	if region := b.otherRegion(err); region != "" {
		return fmt.Errorf("check %s: %w: the bucket is in region %s; add ?region=%[3]s to the address", b, ErrDenied, region)
	}
	if answered(err) {
		// The answer to HEAD has no message. Listing one object fails for the same
		// reason and has one.
		if _, err = b.client.List(ctx, s3api.Query{Prefix: b.addr.prefix, Max: 1}); err == nil {
			return nil
		}
	}
	return fmt.Errorf("check %s: %w", b, explain(ctx, err, "%s", b.hint(err)))
}

func (b *Bucket) hint(err error) string {
	for code, hint := range hints {
		if s3api.HasCode(err, code) {
			return hint
		}
	}
	if !answered(err) {
		if b.addr.endpoint != "" {
			return "nothing answers at " + b.addr.endpoint
		}
		return "the service cannot be reached"
	}
	return "the service answers, but not like an S3 bucket"
}

// answered reports whether the service sent any answer.
func answered(err error) bool {
	var answer *s3api.Error
	return errors.As(err, &answer)
}

// otherRegion returns the region that an answer names, if requests are for another one.
func (b *Bucket) otherRegion(err error) string {
	var answer *s3api.Error
	if !errors.As(err, &answer) || answer.Region == b.client.Region() {
		return ""
	}
	return answer.Region
}
