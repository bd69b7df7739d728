package s3blob

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/internal/s3api"
)

// abortTimeout limits the attempt to abort an upload, whose caller may be gone.
const abortTimeout = 10 * time.Second

// upload is an object that is being sent in parts. It is visible in the bucket only
// when complete.
type upload struct {
	bucket    *Bucket
	path      string
	id        string
	checksums bool // whether checksums are sent
	parts     []s3api.Part
	sum       uint32 // of all parts so far
}

// putParts sends an object in parts.
func (b *Bucket) putParts(ctx context.Context, path string, r io.Reader, size int64) (err error) {
	u, err := b.begin(ctx, path)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, u.abort(ctx))
		}
	}()
	if err := u.send(ctx, r, size); err != nil {
		return err
	}
	if err := expectEnd(r); err != nil {
		return err
	}
	return u.complete(ctx, size)
}

func (b *Bucket) begin(ctx context.Context, path string) (*upload, error) {
	u := &upload{bucket: b, path: path}
	err := b.checksummed(func(checksums bool) error {
		id, err := b.client.CreateUpload(ctx, path, checksums)
		if err != nil {
			return explain(ctx, err, "begin an upload in parts")
		}
		u.id, u.checksums = id, checksums
		return nil
	})
	return u, err
}

// partSize returns the size of all parts but the last.
func (b *Bucket) partSize(size int64) int64 {
	return max(b.opts.PartSize, (size+maxParts-1)/maxParts)
}

// send reads the source and sends a few parts at a time. When one fails, no others
// are started, but those under way are not cancelled: a service may still process a
// cancelled request and keep its part after the upload is aborted.
func (u *upload) send(ctx context.Context, r io.Reader, size int64) error {
	part := u.bucket.partSize(size)
	u.parts = make([]s3api.Part, (size+part-1)/part)
	var group errgroup.Group
	var failed atomic.Bool
	group.SetLimit(u.bucket.opts.Parallel) // Go blocks, and reading with it
	for i := range u.parts {
		if failed.Load() {
			break
		}
		buf := u.bucket.buffer(min(part, size-int64(i)*part))
		if err := fill(r, buf); err != nil {
			u.bucket.release(buf)
			return firstOf(group.Wait(), err) // the error of a part is the cause, if there is one
		}
		u.sum = crc32.Update(u.sum, castagnoli, buf)
		group.Go(func() error {
			defer u.bucket.release(buf)
			err := u.sendPart(ctx, i, buf)
			if err != nil {
				failed.Store(true)
			}
			return err
		})
	}
	return group.Wait()
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (u *upload) sendPart(ctx context.Context, i int, data []byte) error {
	sum := crc32.Checksum(data, castagnoli)
	content := s3api.Content{Data: data, MD5: s3api.MD5(data)}
	if u.checksums {
		content.CRC32C = sumHeader(sum)
	}
	tag, confirmed, err := u.bucket.client.PutPart(ctx, u.path, u.id, i+1, content)
	if err != nil {
		return explain(ctx, err, "send part %d of %d", i+1, len(u.parts))
	}
	u.parts[i] = s3api.Part{Tag: tag, CRC32C: content.CRC32C}
	return sameSum(confirmed, sum)
}

// complete turns the parts into an object. If the answer is lost and the request
// repeated, the service may no longer know the upload. What counts is the object,
// whose size is checked in any case.
func (u *upload) complete(ctx context.Context, size int64) error {
	sum := ""
	if u.checksums {
		sum = sumHeader(u.sum)
	}
	confirmed, kind, err := u.bucket.client.CompleteUpload(ctx, u.path, u.id, u.parts, sum)
	if err != nil && !s3api.HasCode(err, "NoSuchUpload") {
		return explain(ctx, err, "complete an upload of %d parts", len(u.parts))
	}
	if err == nil && kind != s3api.Composite {
		if err := sameSum(confirmed, u.sum); err != nil {
			return err
		}
	}
	stored, statErr := u.bucket.size(ctx, u.path)
	switch {
	case statErr != nil && err != nil:
		return explain(ctx, err, "complete an upload of %d parts", len(u.parts))
	case statErr != nil:
		return fmt.Errorf("look for the object of a completed upload: %w", statErr)
	case stored != size:
		return fmt.Errorf("%w: the bucket has %d bytes after an upload of %d", blob.ErrCorrupt, stored, size)
	}
	return nil
}

// abort discards the parts. The caller's context may have ended the upload, so the
// cleanup does not use it.
func (u *upload) abort(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTimeout)
	defer cancel()
	return u.bucket.abort(ctx, u.path, u.id)
}

func (b *Bucket) abort(ctx context.Context, path, id string) error {
	err := b.client.AbortUpload(ctx, path, id)
	if err != nil && !s3api.HasCode(err, "NoSuchUpload") {
		return explain(ctx, err, "abort the upload of %q", path)
	}
	return nil
}

// AbortStale aborts uploads in parts that are older than a given age and returns how
// many. A killed process leaves its parts, which cost money and do not appear in
// listings of objects. The age must exceed the time of an upload and allow for clock
// differences; a day is a good choice.
func (b *Bucket) AbortStale(ctx context.Context, olderThan time.Duration) (int, error) {
	before, aborted := time.Now().Add(-olderThan), 0
	keyMarker, idMarker := "", ""
	for {
		out, err := b.client.ListUploads(ctx, b.addr.prefix, keyMarker, idMarker)
		if err != nil {
			return aborted, explain(ctx, err, "list uploads in parts")
		}
		for _, u := range out.Entries {
			if u.Begun.IsZero() || u.Begun.After(before) || u.Key == "" {
				continue
			}
			if err := b.abort(ctx, u.Key, u.ID); err != nil {
				return aborted, err
			}
			aborted++
		}
		again := out.KeyMarker == "" || out.KeyMarker == keyMarker && out.IDMarker == idMarker
		if !out.More || again {
			return aborted, nil
		}
		keyMarker, idMarker = out.KeyMarker, out.IDMarker
	}
}
