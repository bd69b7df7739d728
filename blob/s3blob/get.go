package s3blob

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/internal/s3api"
)

// OpenObject implements blob.Objects.
func (b *Bucket) OpenObject(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	path, err := b.path(key)
	if err == nil {
		err = ctx.Err()
	}
	var r io.ReadCloser
	switch {
	case err != nil:
	case offset < 0:
		err = fmt.Errorf("%w: negative offset %d", blob.ErrCorrupt, offset)
	case length == 0: // a range cannot be empty
		r, err = b.openNothing(ctx, path, offset)
	default:
		r, err = b.open(ctx, path, offset, length)
	}
	if err != nil {
		return nil, fmt.Errorf("open object %q: %w", key, err)
	}
	return r, nil
}

// openNothing opens an empty range; it only checks that the object exists and is long
// enough.
func (b *Bucket) openNothing(ctx context.Context, path string, offset int64) (io.ReadCloser, error) {
	size, err := b.size(ctx, path)
	if err != nil {
		return nil, err
	}
	if offset > size {
		return nil, outside(offset, 0, size)
	}
	return io.NopCloser(strings.NewReader("")), nil
}

func (b *Bucket) open(ctx context.Context, path string, offset, length int64) (io.ReadCloser, error) {
	answer, err := b.get(ctx, path, offset, length)
	if errors.Is(err, blob.ErrCorrupt) && length < 0 {
		// The rest of an object from its end is empty, which is not a valid range.
		return b.openNothing(ctx, path, offset)
	}
	if err != nil {
		return nil, err
	}
	left := length
	if length < 0 {
		left = answer.total - offset
	}
	if left > answer.total-offset {
		answer.body.Close()
		return nil, outside(offset, length, answer.total)
	}
	r := &reader{ctx: ctx, bucket: b, path: path, first: answer, body: answer.body, next: offset, left: left}
	r.checked = offset == 0 && left == answer.total && answer.sum != nil
	return r, nil
}

func outside(offset, length, size int64) error {
	return fmt.Errorf("%w: range of %d bytes at %d is outside of %d bytes", blob.ErrCorrupt, max(length, 0), offset, size)
}

// answer is the answer to a request for part of an object.
type answer struct {
	body  io.ReadCloser
	total int64   // size of the whole object
	etag  string  // distinguishes objects under one key
	sum   *uint32 // CRC-32C of the whole object, if known
}

// get requests length bytes from offset, or the rest if length is negative. The body
// may hold fewer.
func (b *Bucket) get(ctx context.Context, path string, offset, length int64) (*answer, error) {
	part := ""
	switch {
	case length > 0:
		part = fmt.Sprintf("bytes=%d-%d", offset, offset+length-1)
	case offset > 0:
		part = fmt.Sprintf("bytes=%d-", offset)
	}
	object, err := b.client.Get(ctx, path, part)
	if err != nil {
		return nil, explain(ctx, err, "get %d bytes at %d", length, offset)
	}
	start, total, err := contentRange(object)
	if err == nil && start != offset {
		err = fmt.Errorf("%w: the service sent bytes from %d, not from %d", errors.ErrUnsupported, start, offset)
	}
	if err != nil {
		object.Body.Close()
		return nil, err
	}
	return &answer{body: object.Body, total: total, etag: object.Header.Get("ETag"), sum: storedSum(object)}, nil
}

// contentRange returns where an answer begins and how large the whole object is.
func contentRange(object *s3api.Object) (start, total int64, err error) {
	text := object.Header.Get("Content-Range")
	if text == "" { // the whole object, requested or not
		if object.Length < 0 {
			return 0, 0, fmt.Errorf("%w: the service does not report the size of the object", errors.ErrUnsupported)
		}
		return 0, object.Length, nil
	}
	var end int64
	if _, err := fmt.Sscanf(text, "bytes %d-%d/%d", &start, &end, &total); err != nil || start < 0 || end < start || total <= end {
		return 0, 0, fmt.Errorf("%w: the service sent the range %q", errors.ErrUnsupported, text)
	}
	return start, total, nil
}

// storedSum returns the checksum that came with an object: ours from the metadata or
// the service's own, unless that is a sum of part checksums.
func storedSum(object *s3api.Object) *uint32 {
	var raw []byte
	if text := object.Header.Get("X-Amz-Meta-" + metaSum); text != "" {
		raw, _ = hex.DecodeString(text)
	} else if object.Header.Get("X-Amz-Checksum-Type") != s3api.Composite {
		raw, _ = base64.StdEncoding.DecodeString(object.Header.Get("X-Amz-Checksum-Crc32c"))
	}
	if len(raw) != 4 {
		return nil
	}
	sum := binary.BigEndian.Uint32(raw)
	return &sum
}

// size returns the size of an object. It does not use HEAD, whose answer does not
// distinguish a missing object from a missing bucket.
func (b *Bucket) size(ctx context.Context, path string) (int64, error) {
	answer, err := b.get(ctx, path, 0, 1)
	if errors.Is(err, blob.ErrCorrupt) {
		return 0, nil // there is no first byte
	}
	if err != nil {
		return 0, err
	}
	return answer.total, answer.body.Close()
}
