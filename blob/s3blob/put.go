package s3blob

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/internal/s3api"
)

// metaSum is the metadata that holds the CRC-32C of an object sent in one piece, as
// eight hexadecimal digits.
const metaSum = "stet-crc32c"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// PutObject implements blob.Objects.
func (b *Bucket) PutObject(ctx context.Context, key string, r io.Reader, size int64) error {
	path, err := b.path(key)
	switch {
	case err != nil:
	case ctx.Err() != nil:
		err = ctx.Err()
	case size < 0:
		err = fmt.Errorf("%w: negative size %d", blob.ErrMismatch, size)
	case size > maxObject:
		err = fmt.Errorf("%w: %d bytes, more than %d", blob.ErrTooLarge, size, int64(maxObject))
	case size <= b.opts.PartSize:
		err = b.putWhole(ctx, path, r, size)
	default:
		err = b.putParts(ctx, path, r, size)
	}
	if err != nil {
		return fmt.Errorf("put object %q: %w", key, err)
	}
	return nil
}

// putWhole sends an object in one request. All of it is read before anything is sent,
// so a bad source costs nothing.
func (b *Bucket) putWhole(ctx context.Context, path string, r io.Reader, size int64) error {
	buf := b.buffer(size)
	defer b.release(buf)
	if err := fill(r, buf); err != nil {
		return err
	}
	if err := expectEnd(r); err != nil {
		return err
	}
	sum := crc32.Checksum(buf, castagnoli)
	return b.checksummed(func(checksums bool) error {
		content := s3api.Content{
			Data: buf,
			// Every service checks this one; only some check the others.
			MD5:  s3api.MD5(buf),
			Meta: map[string]string{metaSum: hex.EncodeToString(sumBytes(sum))},
		}
		if checksums {
			content.CRC32C = sumHeader(sum)
		}
		confirmed, err := b.client.Put(ctx, path, content)
		if err != nil {
			return explain(ctx, err, "send %d bytes", size)
		}
		return sameSum(confirmed, sum)
	})
}

// checksummed calls fn with checksums that not every service supports and, if they
// are refused, without. Checksums that every service supports are always sent.
func (b *Bucket) checksummed(fn func(checksums bool) error) error {
	if b.noChecksums.Load() {
		return fn(false)
	}
	err := fn(true)
	if err == nil || !s3api.HasCode(err, "NotImplemented", "InvalidArgument", "InvalidRequest") {
		return err
	}
	if fn(false) != nil {
		return err
	}
	b.noChecksums.Store(true)
	return nil
}

// fill reads until buf is full.
func fill(r io.Reader, buf []byte) error {
	n, err := io.ReadFull(r, buf)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: the source ended %d bytes early", blob.ErrMismatch, len(buf)-n)
	}
	if err != nil {
		return fmt.Errorf("read the source: %w", err)
	}
	return nil
}

// expectEnd fails if the source has more bytes.
func expectEnd(r io.Reader) error {
	switch _, err := io.ReadFull(r, make([]byte, 1)); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return fmt.Errorf("read the end of the source: %w", err)
	}
	return fmt.Errorf("%w: the source has more bytes than announced", blob.ErrMismatch)
}

// buffer returns memory for a part. Large ones are reused: otherwise several would
// pile up between garbage collections.
func (b *Bucket) buffer(size int64) []byte {
	if size > b.opts.PartSize/2 && size <= b.opts.PartSize {
		if p, ok := b.buffers.Get().(*[]byte); ok {
			return (*p)[:size]
		}
		return make([]byte, size, b.opts.PartSize)
	}
	return make([]byte, size)
}

// release takes back a buffer that is no longer read.
func (b *Bucket) release(buf []byte) {
	if int64(cap(buf)) == b.opts.PartSize {
		b.buffers.Put(&buf)
	}
}

// sameSum checks the checksum that the service reports, if it does.
func sameSum(answer string, sum uint32) error {
	if answer != "" && answer != sumHeader(sum) {
		return fmt.Errorf("%w: the bucket confirmed different bytes than were sent", blob.ErrCorrupt)
	}
	return nil
}

func sumBytes(sum uint32) []byte { return binary.BigEndian.AppendUint32(nil, sum) }

func sumHeader(sum uint32) string { return base64.StdEncoding.EncodeToString(sumBytes(sum)) }
