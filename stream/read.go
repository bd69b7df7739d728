package stream

import (
	"context"
	"errors"
	"fmt"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/fault"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// ReadOptions configure reads; nil gives the defaults.
type ReadOptions struct {
	// MaxBytes ends a batch after the append that reaches it, 1 MiB by default. Appends
	// are never split.
	MaxBytes int
}

// defaultBatch is the size of a batch.
const defaultBatch = 1 << 20

// Batch is a part of a stream.
type Batch struct {
	// Info is the stream as it was when the batch was read.
	Info Info
	// Appends are in order; Body joins them.
	Appends []Content
	// Next is the place after them, from which to continue.
	Next Offset
	// UpToDate means that there was nothing after Next.
	UpToDate bool
	// Closed means that there will never be anything after Next.
	Closed bool

	only *sharedAppend // where the batch is one append that followers share
}

// Content is what one append added: bytes or, in a stream of JSON, messages separated by
// commas.
type Content struct {
	// End is the place after the append.
	End  Offset
	Data []byte
}

// Read returns some of the appends after a place, or none at the end. It fails with
// ErrNotFound or ErrGone, and with ErrInvalidOffset if the stream does not have the
// place. A read postpones the expiry of a stream that expires without reads.
func (s *Store) Read(ctx context.Context, path string, after Offset, opts *ReadOptions) (Batch, error) {
	for range 3 {
		now, err := s.load(ctx, path)
		if err != nil {
			return Batch{}, err
		}
		if err := s.touch(ctx, now); err != nil {
			return Batch{}, err
		}
		b, err := s.batch(ctx, now.rec, after, opts)
		if !errors.Is(err, errMissing) {
			return b, err
		}
		// The stream was deleted since its record was read, or an append is lost.
	}
	return Batch{}, fmt.Errorf("read stream %s after %s: %w", path, after, ErrDataLoss)
}

// errMissing means that a row is missing.
var errMissing = fault.New(fault.Damaged, "an append is missing")

func (s *Store) batch(ctx context.Context, rec *stetv1.StreamRecord, after Offset, opts *ReadOptions) (Batch, error) {
	limit := defaultBatch
	if opts != nil && opts.MaxBytes > 0 {
		limit = opts.MaxBytes
	}
	b := Batch{Info: infoOf(rec), Next: after}
	if err := checkEnd(rec, after); err != nil {
		return Batch{}, fmt.Errorf("read stream %s: %w", rec.Path, err)
	}
	taken := 0
	err := s.each(ctx, rec, after.Seq, func(a *stetv1.StreamAppend) (bool, error) {
		if a.Start != b.Next.Bytes {
			if b.Next == after {
				return false, fmt.Errorf("read stream %s: %w: %s is not a place of it", rec.Path, ErrInvalidOffset, after)
			}
			return false, fmt.Errorf("%w: append %d of stream %s begins at byte %d, after %s", ErrDataLoss, a.Seq, rec.Path, a.Start, b.Next)
		}
		data, err := s.data(ctx, a)
		if err != nil {
			return false, fmt.Errorf("read append %d of stream %s: %w", a.Seq, rec.Path, err)
		}
		b.Appends, b.Next = append(b.Appends, Content{End: end(a), Data: data}), end(a)
		taken += len(data)
		return taken < limit, nil
	})
	if err != nil {
		return Batch{}, err
	}
	b.UpToDate = b.Next == b.Info.Tail
	b.Closed = b.UpToDate && rec.Closed
	return b, nil
}

// checkEnd rejects a place after the end of a stream, and one with the number of the
// end that differs from it.
func checkEnd(rec *stetv1.StreamRecord, at Offset) error {
	tail := offsetOf(rec.Tail)
	if at.Seq > tail.Seq || at.Seq == tail.Seq && at != tail || at.Seq == 0 && at.Bytes != 0 {
		return fmt.Errorf("%w: the stream ends at %s and does not have %s", ErrInvalidOffset, tail, at)
	}
	return nil
}

// after returns the append after a place, nil at the end, and an error for a place
// that is not in the stream.
func (s *Store) after(ctx context.Context, rec *stetv1.StreamRecord, at Offset) (next *stetv1.StreamAppend, err error) {
	if err := checkEnd(rec, at); err != nil {
		return nil, err
	}
	err = s.each(ctx, rec, at.Seq, func(a *stetv1.StreamAppend) (bool, error) {
		next = a
		if a.Start != at.Bytes {
			return false, fmt.Errorf("%w: %s is not a place of the stream", ErrInvalidOffset, at)
		}
		return false, nil
	})
	if errors.Is(err, errMissing) {
		return nil, kv.ErrConflict // the stream was deleted, or will be found damaged
	}
	return next, err
}

// pageRows is how many appends are read at once.
const pageRows = 128

// each calls fn with the appends after a number, up to the end of the record, until
// it returns false. It fails with errMissing if one is missing.
func (s *Store) each(ctx context.Context, rec *stetv1.StreamRecord, after uint64, fn func(*stetv1.StreamAppend) (bool, error)) error {
	parts := inherited(rec, rec.Tail.GetSeq())
	for next := after + 1; next <= rec.Tail.GetSeq(); {
		for parts[0].End < next {
			parts = parts[1:]
		}
		in := keyspace.StreamAppends(parts[0].Id, next)
		in.End = keyspace.StreamAppend(parts[0].Id, parts[0].End+1)
		begun := next
		for row, err := range s.rows.Scan(ctx, in, kv.ScanOptions{Limit: pageRows}) {
			if err != nil {
				return fmt.Errorf("read stream %s: %w", rec.Path, err)
			}
			a, err := decodeAppend(row)
			if err != nil {
				return err
			}
			if a.Seq != next {
				return errMissing
			}
			next++
			if more, err := fn(a); err != nil || !more {
				return err
			}
		}
		if next == begun {
			return errMissing
		}
	}
	return nil
}

// data returns the content of an append.
func (s *Store) data(ctx context.Context, a *stetv1.StreamAppend) ([]byte, error) {
	if len(a.Blob) == 0 {
		return a.Data, nil
	}
	data, err := s.blobs.Get(ctx, blob.ID(a.Blob))
	if errors.Is(err, blob.ErrNotFound) {
		return nil, errMissing // deleted and collected, or lost
	}
	return data, err
}
