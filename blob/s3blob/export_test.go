package s3blob

import "context"

// BeginUpload begins an upload in parts and leaves it, as a crash does.
func (b *Bucket) BeginUpload(ctx context.Context, key string) error {
	_, err := b.begin(ctx, b.addr.prefix+key)
	return err
}

// Uploads counts the uploads in parts that the bucket knows.
func (b *Bucket) Uploads(ctx context.Context) (int, error) {
	out, err := b.client.ListUploads(ctx, "", "", "")
	if err != nil {
		return 0, err
	}
	return len(out.Entries), nil
}
