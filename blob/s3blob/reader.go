package s3blob

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"time"

	"github.com/stet-dev/stet/blob"
)

const (
	// firstWait is the approximate wait before a broken read continues; later waits
	// double.
	firstWait = 50 * time.Millisecond
	// goodProgress is how many bytes must arrive before earlier breaks are forgotten.
	goodProgress = 1 << 20
)

// reader reads a range of an object over as many connections as needed.
type reader struct {
	// ctx is the context of the call that opened the object; continuing needs
	// requests.
	ctx    context.Context
	bucket *Bucket
	path   string
	first  *answer // the object when it was opened

	body     io.ReadCloser // nil while there is no connection
	next     int64         // offset of the next byte
	left     int64         // bytes until the end
	breaks   int           // breaks without good progress
	progress int64         // bytes since the last break
	cause    error         // of the last break

	checked bool   // whether sum covers the whole object
	sum     uint32 // of the bytes read
	err     error  // what Read returns afterwards
}

// Read implements io.Reader.
func (r *reader) Read(p []byte) (int, error) {
	for r.err == nil && r.left > 0 {
		if len(p) == 0 {
			return 0, nil
		}
		if r.body == nil {
			r.err = r.resume()
			continue
		}
		n, err := r.body.Read(p[:min(int64(len(p)), r.left)])
		r.count(p[:n])
		if err != nil && r.left > 0 {
			r.drop(err)
		}
		if r.left == 0 {
			if r.err = r.verify(); r.err != nil {
				// The last bytes are held back: a caller that reads an exact number
				// never reads the end.
				return 0, r.err
			}
		}
		if n > 0 {
			return n, nil
		}
	}
	if r.err == nil {
		return 0, io.EOF
	}
	return 0, r.err
}

func (r *reader) count(p []byte) {
	n := int64(len(p))
	r.next, r.left, r.progress = r.next+n, r.left-n, r.progress+n
	if r.checked {
		r.sum = crc32.Update(r.sum, castagnoli, p)
	}
}

// verify compares a whole object with its checksum.
func (r *reader) verify() error {
	if r.checked && r.sum != *r.first.sum {
		return fmt.Errorf("read %q: %w: its CRC-32C is %08x, not %08x", r.path, blob.ErrCorrupt, r.sum, *r.first.sum)
	}
	return nil
}

// drop closes a connection that ended before the range did.
func (r *reader) drop(cause error) {
	if errors.Is(cause, io.EOF) {
		cause = io.ErrUnexpectedEOF
	}
	r.body.Close() // already broken
	r.body, r.cause = nil, cause
	if r.progress >= goodProgress {
		r.breaks = 0
	}
	r.breaks, r.progress = r.breaks+1, 0
}

// resume requests the rest of the range.
func (r *reader) resume() error {
	if r.breaks >= r.bucket.opts.MaxAttempts {
		return fmt.Errorf("read %q at %d: %w: the connection broke %d times: %w", r.path, r.next, ErrUnavailable, r.breaks, r.cause)
	}
	if err := r.wait(); err != nil {
		return fmt.Errorf("read %q at %d: %w: %w", r.path, r.next, err, r.cause)
	}
	answer, err := r.bucket.get(r.ctx, r.path, r.next, r.left)
	if err != nil {
		return fmt.Errorf("resume reading %q at %d: %w", r.path, r.next, err)
	}
	if answer.total != r.first.total || answer.etag != r.first.etag {
		answer.body.Close()
		return fmt.Errorf("resume reading %q at %d: %w: the object has changed", r.path, r.next, blob.ErrCorrupt)
	}
	r.body = answer.body
	return nil
}

// wait waits longer after every break, to let the service recover.
func (r *reader) wait() error {
	limit := min(firstWait<<min(r.breaks-1, 20), r.bucket.opts.MaxWait)
	timer := time.NewTimer(limit/2 + rand.N(limit/2+1))
	defer timer.Stop()
	select {
	case <-timer.C:
		return r.ctx.Err()
	case <-r.ctx.Done():
		return r.ctx.Err()
	}
}

// Close implements io.Closer.
func (r *reader) Close() error {
	if r.err == nil {
		r.err = fmt.Errorf("read %q: %w", r.path, blob.ErrClosed)
	}
	if r.body == nil {
		return nil
	}
	body := r.body
	r.body = nil
	return body.Close()
}
