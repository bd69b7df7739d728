package s3blob

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// BeginUpload begins an upload in parts and leaves it, as a crash does.
func (b *Bucket) BeginUpload(ctx context.Context, key string) error {
	_, err := b.begin(ctx, b.addr.prefix+key)
	return err
}

// Uploads counts the uploads in parts that the bucket knows.
func (b *Bucket) Uploads(ctx context.Context) (int, error) {
	out, err := b.client.ListMultipartUploads(ctx, &s3.ListMultipartUploadsInput{Bucket: &b.addr.bucket})
	if err != nil {
		return 0, err
	}
	return len(out.Uploads), nil
}
