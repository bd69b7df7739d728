package writethrough

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/stet-dev/stet/blob"
)

// send writes queued items to the remote until ctx is done. There is only one sender,
// so writes arrive in order.
func (s *Store) send(ctx context.Context) {
	defer close(s.stopped)
	for {
		batch := s.next(ctx)
		if batch == nil {
			return
		}
		if len(batch) == 1 {
			s.sendAlone(ctx, batch[0])
		} else {
			s.sendBatch(ctx, batch)
		}
	}
}

// sendBatch writes small blobs with one call. If that fails it tries them one by one,
// so that a bad one does not hold up the good ones, unless the remote seems to be
// down.
func (s *Store) sendBatch(ctx context.Context, batch []*item) {
	items, blobs := batch[:0:0], make([]blob.Blob, 0, len(batch))
	for _, it := range batch {
		b, err := s.load(ctx, it)
		if err != nil {
			s.finish(&failure{err}, it)
			continue
		}
		items, blobs = append(items, it), append(blobs, b)
	}
	if len(items) == 0 {
		return
	}
	err := s.remote.Put(ctx, blobs...)
	if err == nil {
		s.finish(nil, items...)
		return
	}
	for i, it := range items {
		alone := s.remote.Put(ctx, blobs[i])
		it.suspect = alone != nil
		if alone == nil {
			s.finish(nil, it)
			continue
		}
		s.finish(&failure{alone}, it)
		if !aboutBlob(alone) {
			s.finish(&failure{err}, items[i+1:]...)
			return
		}
	}
}

// sendAlone writes one blob, streaming it if it is large.
func (s *Store) sendAlone(ctx context.Context, it *item) {
	err := s.stream(ctx, it)
	if err == nil {
		it.suspect = false
		s.finish(nil, it)
		return
	}
	it.suspect = true
	s.finish(&failure{err}, it)
}

func (s *Store) stream(ctx context.Context, it *item) error {
	if it.size <= batchBytes || !it.base.IsZero() {
		b, err := s.load(ctx, it)
		if err != nil {
			return err
		}
		return s.remote.Put(ctx, b)
	}
	r := &reopening{open: func() (io.ReadCloser, error) { return blob.Open(ctx, s.local, it.id) }}
	defer r.Close()
	err := blob.PutFrom(ctx, s.remote, it.id, r, it.size)
	it.gone = err != nil && r.gone
	return err
}

// load reads an item's content back from the local store.
func (s *Store) load(ctx context.Context, it *item) (blob.Blob, error) {
	data, err := s.local.Get(ctx, it.id)
	if err != nil {
		it.gone = errors.Is(err, blob.ErrNotFound)
		return blob.Blob{}, fmt.Errorf("read back from local: %w", err)
	}
	return blob.Blob{ID: it.id, Data: data, Base: it.base}, nil
}

// reopening is a stream that can seek back to its start by opening its source
// again, so that a retrying remote can repeat it.
type reopening struct {
	open   func() (io.ReadCloser, error)
	r      io.ReadCloser
	offset int64
	gone   bool // the source does not exist
}

// Read implements io.Reader.
func (r *reopening) Read(p []byte) (int, error) {
	if r.r == nil {
		opened, err := r.open()
		if err != nil {
			r.gone = errors.Is(err, blob.ErrNotFound)
			return 0, fmt.Errorf("read back from local: %w", err)
		}
		r.r = opened
	}
	n, err := r.r.Read(p)
	r.offset += int64(n)
	return n, err
}

// Seek returns the position and goes back to the start, which is all that a retry
// needs.
func (r *reopening) Seek(offset int64, whence int) (int64, error) {
	switch {
	case whence == io.SeekCurrent && offset == 0:
		return r.offset, nil
	case whence == io.SeekStart && offset == 0:
		r.offset = 0
		return 0, r.Close()
	}
	return 0, fmt.Errorf("seek in blob: %w", errors.ErrUnsupported)
}

// Close implements io.Closer.
func (r *reopening) Close() error {
	if r.r == nil {
		return nil
	}
	err := r.r.Close()
	r.r = nil
	return err
}
